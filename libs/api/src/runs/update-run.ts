import type { RunUpdate, UpdateRun } from "@konverge/contracts";
import { defined, KonvergeError, showEncoded } from "@konverge/core";
import { formatRunId } from "@konverge/workflow";
import type { Wait } from "../http/waits.ts";
import { fitting, type FoundRun } from "./find-run.ts";

/**
 * Sends an update and waits for its answer. Each poll reads the answer and the status of the run.
 * @param options.onSent called once the run has the update, whatever the answer is
 * @throws KonvergeError `invalid_request` if the run refuses it, with the invalid fields; `run_ended` if it ended without an answer
 */
export async function updateRun(
  { workflows, ref, cluster }: Pick<FoundRun, "workflows" | "ref" | "cluster">,
  { name, payload, id: given, by }: UpdateRun,
  { wait, onSent }: { readonly wait: Wait; readonly onSent: () => void },
): Promise<RunUpdate> {
  const message = { payload, by, ...defined({ id: given }) };
  const { id } = await fitting("/payload", () => workflows.update(ref, name, message));
  onSent();
  const { answer, hasEnded } = await wait.until({
    id: `update ${formatRunId(ref, cluster)} ${id}`,
    async read() {
      // First: a run answers before it ends.
      const overview = await workflows.peek(ref);
      return {
        answer: await workflows.answerTo(ref, id),
        hasEnded: overview?.hasEnded !== false,
      };
    },
    isEnd: (state) => state.answer !== undefined || state.hasEnded,
  });
  if (answer === undefined) {
    if (!hasEnded) return { id, status: "pending" };
    throw new KonvergeError("run_ended", `run ${ref.id} ended without handling update "${name}"`);
  }
  if (answer.kind === "refused") {
    const { message: detail, issues } = answer.refusal;
    throw new KonvergeError(
      "invalid_request",
      `update "${name}" was refused: ${showEncoded(detail)}`,
      {
        issues,
      },
    );
  }
  const { step, value } = answer;
  return { id, status: "accepted", step, ...defined({ answer: value }) };
}
