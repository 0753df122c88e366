import { shortName } from "@konverge/core";
import type { StreamEvent } from "@konverge/contracts";
import { useRef } from "preact/hooks";
import { workflowOf } from "../api/run-id.ts";
import { apiPath, viewHref } from "../state/cluster.ts";
import { objectHref, runHref } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { ErrorCode } from "../parts/error-code.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatMs, plural } from "../parts/format.ts";
import { Empty, Loading } from "../parts/notice.tsx";
import { Outcome, outcomeNames, Status } from "../parts/status.tsx";
import { Clock } from "../parts/time.tsx";
import { useTail, type Tail, type TailEvent } from "./live/use-tail.ts";

/** Rows are held back when the page is scrolled further than this. */
const TOP_PX = 120;
/** Attempts that ended before the page was opened. */
const EARLIER = 50;

/** Finished attempts and changes as they happen. Rows are held back while the mouse or the focus is on the list. */
export function LiveView() {
  const filters = filtersOf(["name", "namespace", "controller", "outcome"]);
  const list = useRef<HTMLDivElement>(null);
  const isRead = () =>
    window.scrollY > TOP_PX ||
    list.current?.matches(":hover") === true ||
    list.current?.contains(document.activeElement) === true;
  const earlier = apiPath("attempts", { ...filters, limit: String(EARLIER) });
  const tail = useTail(apiPath("events", filters), earlier, isRead);
  return (
    <>
      <div class="title-row">
        <h1>Live</h1>
        <Connection state={tail.state} />
      </div>
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter name="controller" label="Controller" />
        <Filter name="outcome" label="Outcome" choices={outcomeNames} />
      </Filters>
      <div ref={list}>
        <div class="held" role="status">
          {tail.held === 0 ? null : (
            <button type="button" class="fresh" onClick={tail.release}>
              {plural(tail.held, "new event")}
            </button>
          )}
        </div>
        {tail.rows.length === 0 && tail.isReading ? (
          <Loading rows={10} />
        ) : tail.rows.length === 0 && tail.held === 0 ? (
          <Empty title="No events yet">
            <p>Finished attempts, operator actions and breaker transitions appear here.</p>
          </Empty>
        ) : (
          <ol class="tail panel">
            {tail.rows.map((row) => (
              <TailRow key={`${row.id}${row.at}`} row={row} />
            ))}
          </ol>
        )}
      </div>
      <CliLine line={["konverge attempt list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

function Connection({ state }: Pick<Tail, "state">) {
  switch (state) {
    case "open":
      return <Status tone="good">connected</Status>;
    case "connecting":
      return <Status tone="run">connecting</Status>;
    case "broken":
      return <Status tone="warn">connection lost, reconnecting</Status>;
  }
}

function TailRow({ row: { at, event } }: { readonly row: TailEvent }) {
  return (
    <li>
      <Clock at={at} />
      <TailText event={event} />
    </li>
  );
}

function TailText({ event }: { readonly event: StreamEvent }) {
  switch (event.type) {
    case "attempt": {
      const { key, outcome, controller, durationMs, conflicts, writes, managers } = event.data;
      const { errorCode, errorMessage } = event.data;
      return (
        <>
          <Outcome of={outcome} />
          <a class="strong" href={objectHref(key)} data-row>
            {shortName(event.data)}
          </a>
          <span class="did">
            <span class="dim">{controller}</span>
            {conflicts === 0 ? null : (
              <Status tone="race">
                {`${plural(conflicts, "conflict")}${managers.length === 0 ? "" : ` with ${managers.join(", ")}`}`}
              </Status>
            )}
            {writes === 0 ? null : <span>{plural(writes, "write")}</span>}
            {errorCode === undefined ? null : (
              <span class="bad clip" title={errorMessage}>
                {errorMessage === undefined ? (
                  <code>{errorCode}</code>
                ) : (
                  <ErrorCode code={errorCode} />
                )}
                {errorMessage}
              </span>
            )}
          </span>
          <span class="num right">{formatMs(durationMs)}</span>
        </>
      );
    }
    case "change": {
      const { action, by, controller = "", namespace, name, reason, count } = event.data;
      const what = name ?? namespace ?? controller;
      const workflow = workflowOf(controller);
      return (
        <>
          <Status tone="idle">{action}</Status>
          {workflow === undefined || name === undefined ? (
            <span class="strong">{what}</span>
          ) : (
            <a class="strong" href={runHref(`${workflow}/${event.data.cluster}/${name}`)} data-row>
              {name}
            </a>
          )}
          <span class="did">
            {workflow === undefined ? null : <span class="dim">{workflow}</span>}
            <span>by {by}</span>
            {reason === undefined ? null : <span class="dim">{reason}</span>}
            {count === undefined ? null : <span class="dim">{plural(count, "object")}</span>}
          </span>
          <span />
        </>
      );
    }
    case "guard": {
      const { cluster, transition } = event.data;
      return (
        <>
          <Status
            tone={transition.to === "closed" ? "good" : "bad"}
          >{`breaker ${transition.to}`}</Status>
          <a class="strong" href={viewHref("/guards")} data-row>
            {cluster}
          </a>
          <span class="dim">{transition.operatorReason ?? transition.reason}</span>
          <span />
        </>
      );
    }
  }
}
