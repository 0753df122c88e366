import type { AttemptRecord } from "@konverge/records";
import { formatMs, plural } from "../../parts/format.ts";
import { HintNote } from "../../parts/hint-note.tsx";
import { Frames } from "../../parts/frames.tsx";
import { LogLines } from "../../parts/log-lines.tsx";
import { Outcome, Status } from "../../parts/status.tsx";
import { Clock } from "../../parts/time.tsx";
import { href, path, query, setQuery } from "../../state/router.ts";
import { AttemptBar, timesOf } from "./attempt-bar.tsx";
import { lostWritesOf } from "./conflict-group.ts";
import { LostWriteCard } from "./conflict-story.tsx";
import { conflictsOf, numberOf } from "./conflicts-of.ts";
import { WriteCard } from "./write-card.tsx";

export interface AttemptItemProps {
  readonly record: AttemptRecord;
  /** All attempts shown, to find the later write after a conflict. */
  readonly all: readonly AttemptRecord[];
  readonly scaleMs: number;
}

/** An expandable row with triggers, waits, writes and conflicts. */
export function AttemptItem({ record, all, scaleMs }: AttemptItemProps) {
  const { startedAt, outcome, triggers, writes, error, afterMs, cause } = record;
  const conflicts = conflictsOf(record);
  const number = numberOf(record);
  const kinds = [...new Set(triggers.map(({ kind }) => kind))];
  const before = all[all.indexOf(record) + 1];
  return (
    <li data-attempt={number}>
      <details
        class="attempt"
        open={query.value.get("attempt") === number}
        onToggle={(event) => {
          const isOpen = event.currentTarget.open;
          const shown = query.value.get("attempt");
          if (isOpen && shown !== number) setQuery({ attempt: number });
          else if (!isOpen && shown === number) setQuery({ attempt: undefined });
        }}
      >
        <summary data-row>
          <Clock at={startedAt} />
          <Outcome of={outcome} />
          <span class="did">
            {conflicts === 0 ? null : <Status tone="race">{plural(conflicts, "conflict")}</Status>}
            {record.kind === "plan" ? <span class="dim">only planned</span> : null}
            {writes.length === 0 ? null : <span>{plural(writes.length, "write")}</span>}
            {error === undefined ? null : (
              <span class="bad" title={error.message}>
                {error.message}
              </span>
            )}
            {cause === undefined ? null : <span class="dim">{cause}</span>}
            {afterMs === undefined ? null : <span class="dim">next in {formatMs(afterMs)}</span>}
            <span class="dim why">{kinds.join(", ")}</span>
          </span>
          <AttemptBar record={record} scaleMs={scaleMs} />
          <span class="num right">{formatMs(record.durationMs)}</span>
        </summary>
        <div class="attempt-body">
          <Details record={record} />
          <div class="effects">
            {error === undefined ? null : (
              <div class="note bad">
                <code>{error.code}</code>
                {error.reason === undefined ? null : <span class="dim"> {error.reason}</span>}
                <div>{error.message}</div>
                <Frames of={error.frames} />
              </div>
            )}
            {record.hints?.map(({ code, message }) => (
              <HintNote key={code} hint={{ code, message }} />
            ))}
            {writes.map((write, index) => (
              <WriteCard key={index} write={write} controller={record.controller} />
            ))}
            {lostWritesOf(record).map((lost, index) => (
              <LostWriteCard key={index} lost={lost} record={record} all={all} />
            ))}
            <AttemptLog record={record} />
            {before === undefined ? null : (
              <p class="small">
                <a href={compareHref(numberOf(before), number)}>Compare with the attempt before</a>
              </p>
            )}
            {writes.length === 0 && record.conflicts.length === 0 && error === undefined ? (
              <p class="dim">No changes</p>
            ) : null}
          </div>
        </div>
      </details>
    </li>
  );
}

/** Returns the address of a comparison of two attempts on this page. */
function compareHref(from: string, to: string): string {
  const { attempt: _attempt, ...rest } = Object.fromEntries(query.value);
  return href(path.value, { ...rest, tab: "compare", from, to });
}

/** The last log lines of the handler. */
function AttemptLog({ record: { log, logOmitted } }: { readonly record: AttemptRecord }) {
  if (log === undefined) return null;
  return (
    <details open>
      <summary>Log</summary>
      {logOmitted === undefined ? null : (
        <p class="dim">{plural(logOmitted, "earlier line")} omitted</p>
      )}
      <LogLines lines={log} />
    </details>
  );
}

function Details({ record }: { readonly record: AttemptRecord }) {
  const { triggers, waits, calls, worker, attempt, epoch, traceId, versionBefore, versionAfter } =
    record;
  const times = timesOf(record);
  return (
    <dl class="details">
      <dt>Triggers</dt>
      <dd>
        {triggers.length === 0 ? <span class="dim">retry of an earlier attempt</span> : null}
        {triggers.map(({ kind, by, reason, resourceVersion }, index) => (
          <div key={index}>
            <span class="tag">{kind}</span> {reason ?? by ?? ""}
            {resourceVersion === undefined ? null : <span class="dim"> saw {resourceVersion}</span>}
          </div>
        ))}
      </dd>
      <dt>Waited</dt>
      <dd class="num">
        <div>{formatMs(waits.queueMs)} in the queue</div>
        {waits.rateLimitMs > 0 ? <div>{formatMs(waits.rateLimitMs)} for tokens</div> : null}
        {waits.laneMs > 0 ? <div>{formatMs(waits.laneMs)} for the object lane</div> : null}
        {waits.conflictMs > 0 ? <div>{formatMs(waits.conflictMs)} after conflicts</div> : null}
        {waits.backoffMs > 0 ? <div>{formatMs(waits.backoffMs)} until the next attempt</div> : null}
      </dd>
      <dt>Ran</dt>
      <dd class="num">
        {formatMs(times.run)}, {plural(calls.count, "API call")} in {formatMs(calls.durationMs)}
      </dd>
      {versionBefore === undefined ? null : (
        <>
          <dt>Version</dt>
          <dd class="num">
            {versionBefore}
            {versionAfter === undefined || versionAfter === versionBefore
              ? " unchanged"
              : ` → ${versionAfter}`}
          </dd>
        </>
      )}
      <dt>Worker</dt>
      <dd>
        <code>{worker}</code>
      </dd>
      <dt>Attempt</dt>
      <dd class="num">
        {attempt}
        {epoch === undefined ? "" : `, epoch ${epoch}`}
      </dd>
      {traceId === undefined ? null : (
        <>
          <dt>Trace</dt>
          <dd>
            <code>{traceId}</code>
          </dd>
        </>
      )}
    </dl>
  );
}
