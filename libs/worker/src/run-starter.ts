import { createHash } from "node:crypto";
import {
  defined,
  formatKey,
  KonvergeError,
  namespaceSegment,
  type ApiObject,
  type ObjectKey,
} from "@konverge/core";
import type { RunStarter } from "@konverge/engine";
import { formatRunId, type RunView, type StartedRun, type Workflows } from "@konverge/workflow";

const HASH_CHARS = 12;

/** Starts the runs that handlers request, one per object and generation. `isCoded`: the input must not show in the id. */
export function createRunStarter(
  runs: Pick<Workflows, "start" | "get">,
  { isCoded = false }: { readonly isCoded?: boolean } = {},
): RunStarter {
  return {
    async startFor({ workflow, input, options, key, object }) {
      const { uid = "", generation } = object.metadata;
      const place = `${key.controller}/${namespaceSegment(key.namespace)}/${key.name}`;
      const id = options.id ?? defaultId(key, object, { input, isCoded });
      const started = await runs.start(workflow, input, {
        id,
        key: options.key ?? place,
        by: `controller ${place}`,
        ...defined({ onExisting: options.onExisting, labels: options.labels }),
        origin: { uid, object: formatKey(key), ...defined({ generation }) },
        ...(options.onEnd === undefined ? {} : { notify: key }),
      });
      const run = await runs.get({ workflow: workflow.name, id: started.id });
      const text = formatRunId({ workflow: workflow.name, id: started.id }, key.cluster);
      const { status, result, error, blockedReason } = run ?? withoutRun(started);
      return {
        id: text,
        created: started.created,
        status,
        ...defined({ result, error, blockedReason }),
      };
    },
  };
}

/** The state of a run that has expired, or that another worker has not created yet. */
function withoutRun({ end }: StartedRun): Partial<RunView> & Pick<RunView, "status"> {
  return end ?? { status: "queued" };
}

/** The same for all attempts of one generation. Kinds without a generation use the input instead. */
function defaultId(
  key: ObjectKey,
  object: ApiObject,
  { input, isCoded }: { readonly input: unknown; readonly isCoded: boolean },
): string {
  const { uid = "", generation } = object.metadata;
  if (generation === undefined && isCoded) {
    throw new KonvergeError(
      "invalid_request",
      `startRun needs an id: ${object.kind ?? "the kind"} has no generation, and an id that is derived from the input would disclose it`,
    );
  }
  return `${key.name}.${hash(uid)}.${generation ?? hash(JSON.stringify(input) ?? "")}`;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}
