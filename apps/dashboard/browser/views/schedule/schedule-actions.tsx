import type { BackfillResponse, ScheduleList, StartRunResponse } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { idOf } from "../../api/run-id.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { textOf } from "../../parts/form-fields.ts";
import { plural } from "../../parts/format.ts";
import { now } from "../../parts/time.tsx";
import { go, runHref } from "../../state/router.ts";

/** Operator actions on a schedule. */
export function ScheduleActions({
  schedule: { name, cluster, paused },
  onDone,
}: {
  readonly schedule: ScheduleList["items"][number];
  readonly onDone: () => void;
}) {
  const post = <T,>(action: string, body: object) =>
    call<T>(`v1/schedules/${encodeURIComponent(cluster)}/${encodeURIComponent(name)}/${action}`, {
      method: "POST",
      body,
    });
  const line = (action: string) => (
    <CliLine line={`konverge schedule ${action} ${quote(name)} --reason WHY`} />
  );
  return (
    <div class="buttons">
      {paused === undefined ? (
        <ActionButton
          label="Pause"
          quiet
          explains={
            <>
              Skips the times of {name} until it is resumed. {line("pause")}
            </>
          }
          run={async (action) => {
            await post("pause", action);
            onDone();
            return `${name} is paused`;
          }}
        />
      ) : (
        <ActionButton
          label="Resume"
          primary
          explains={
            <>
              Continues with the next time of {name}. {line("resume")}
            </>
          }
          run={async (action) => {
            await post("resume", action);
            onDone();
            return `${name} is resumed`;
          }}
        />
      )}
      <ActionButton
        label="Trigger now"
        quiet
        explains={
          <>
            Starts a run of {name} now, even while it is paused. {line("trigger")}
          </>
        }
        run={async (action) => {
          const { id, created } = await post<StartRunResponse>("trigger", action);
          go(runHref(id));
          return created ? `${idOf(id)} is started` : `${idOf(id)} is active already`;
        }}
      />
      <BackfillButton name={name} post={post} onDone={onDone} />
    </div>
  );
}

type Post = <T>(action: string, body: object) => Promise<T>;

/** Starts the missing runs of past times. The dialog lists them first. */
function BackfillButton({
  name,
  post,
  onDone,
}: {
  readonly name: string;
  readonly post: Post;
  readonly onDone: () => void;
}) {
  return (
    <ActionButton
      label="Backfill"
      quiet
      explains={
        <>
          Starts the missing runs of past times, one after the other.
          <CliLine
            line={`konverge schedule backfill ${quote(name)} --from TIME --to TIME --reason WHY`}
          />
        </>
      }
      fields={<BackfillFields post={post} />}
      run={async (action, fields) => {
        const range = rangeOf(textOf(fields, "from"), textOf(fields, "to"));
        const { items } = await post<BackfillResponse>("backfill", { ...action, ...range });
        onDone();
        const started = items.filter(({ created }) => created).length;
        return `${plural(started, "run")} started for ${plural(items.length, "time")}`;
      }}
    />
  );
}

/** The range in UTC, and the times in it. */
function BackfillFields({ post }: { readonly post: Post }) {
  const nowMs = now.value;
  const [from, setFrom] = useState(fieldTime(nowMs - 3_600_000));
  const [to, setTo] = useState(fieldTime(nowMs));
  const [text, setText] = useState("");
  useEffect(() => {
    let isOld = false;
    const preview = async () => {
      try {
        const body = { ...rangeOf(from, to), by: "dashboard", reason: "preview", dryRun: true };
        const { items } = await post<BackfillResponse>("backfill", body);
        const times = items.map(({ at }) => `${at.slice(0, 16).replace("T", " ")} UTC`);
        const shown = times.slice(0, 5).join(", ");
        const more = times.length > 5 ? ` and ${times.length - 5} more` : "";
        if (!isOld) setText(`${plural(times.length, "time")} without a run: ${shown}${more}`);
      } catch (error) {
        if (!isOld) setText(error instanceof Error ? error.message : String(error));
      }
    };
    void preview();
    return () => {
      isOld = true;
    };
  }, [from, to]);
  return (
    <>
      <label>
        From (UTC)
        <input
          name="from"
          type="datetime-local"
          required
          value={from}
          onChange={({ currentTarget }) => setFrom(currentTarget.value)}
        />
      </label>
      <label>
        To (UTC)
        <input
          name="to"
          type="datetime-local"
          required
          value={to}
          onChange={({ currentTarget }) => setTo(currentTarget.value)}
        />
      </label>
      <p role="status">{text}</p>
    </>
  );
}

function fieldTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 16);
}

function rangeOf(from: string, to: string): { readonly from: string; readonly to: string } {
  return { from: `${from.slice(0, 16)}:00Z`, to: `${to.slice(0, 16)}:00Z` };
}
