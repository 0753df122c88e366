import type { GuardList, QueueList } from "@konverge/contracts";
import { useMemo } from "preact/hooks";
import { call } from "../api/call.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { formatRate, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { ActionButton } from "../parts/action-dialog.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { Chart } from "../parts/chart.tsx";
import { usePageState } from "../parts/page-state.ts";
import {
  callsChart,
  callsText,
  completeMinutes,
  waitingCallsChart,
  waitingCallsText,
} from "./activity/charts-of.ts";
import { MinuteTable } from "./activity/minute-table.tsx";
import { GuardFacts } from "./guard/guard-facts.tsx";
import { Outages } from "./guard/outages.tsx";

const EVERY_MS = 3_000;
const MINUTES = 60;
const HEIGHT = 140;

/** The guard of each API server: rate limit, breaker, transitions and operator actions. */
export function GuardsView() {
  const { data, trouble, reload } = useQuery<GuardList>(`v1/guards?minutes=${MINUTES}`, EVERY_MS);
  return (
    <>
      <h1>Guards</h1>
      <GuardState guards={data?.items ?? []} />
      <p class="lead">
        All workers of a cluster share one rate limit and one circuit breaker. When an API server
        fails, all workers stop calling it at the same time.
      </p>
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : data.items.length === 0 ? (
        <Empty title="No guards yet">
          <p>A guard appears after the first API call of a worker.</p>
        </Empty>
      ) : (
        data.items.map((guard) => <GuardCard key={guard.cluster} guard={guard} onDone={reload} />)
      )}
    </>
  );
}

type GuardView = GuardList["items"][number];
type Mode = GuardView["breaker"]["state"];
const MODES: Readonly<Record<Mode, readonly [tone: Tone, text: string, means: string]>> = {
  closed: ["good", "closed", "calls are sent"],
  open: ["bad", "open", "no calls are sent"],
  halfOpen: ["warn", "half open", "one probe at a time is sent"],
  isolated: ["bad", "isolated", "isolated by an operator"],
};

/** Shows the most severe state in the tab. */
function GuardState({ guards }: { readonly guards: readonly GuardView[] }) {
  const bad = guards.filter(
    ({ breaker }) => breaker.state !== "closed" || breaker.outage !== undefined,
  );
  const [first] = bad;
  usePageState({
    title:
      first === undefined ? "Guards" : `${first.cluster} ${MODES[first.breaker.state][1]} · Guards`,
    tone: guards.length === 0 ? undefined : bad.length > 0 ? "bad" : "good",
  });
  return null;
}

function GuardCard({ guard, onDone }: { readonly guard: GuardView; readonly onDone: () => void }) {
  const { cluster, breaker } = guard;
  const [tone, text, means] = MODES[breaker.state];
  return (
    <section class="panel guard" aria-label={`Guard of ${cluster}`}>
      <header>
        <div>
          <h2>{cluster}</h2>
          <Status tone={tone}>{text}</Status> <span class="dim">{means}</span>
          {breaker.openUntil === undefined ? null : (
            <span class="dim">
              , probes <Time at={breaker.openUntil} />
            </span>
          )}
        </div>
        <GuardActions guard={guard} onDone={onDone} />
      </header>
      {breaker.outage === undefined ? null : <OutageNote outage={breaker.outage} />}
      {breaker.isolated === undefined ? null : (
        <p class="note bad">
          Isolated by <strong>{breaker.isolated.by}</strong> <Time at={breaker.isolated.at} />:{" "}
          {breaker.isolated.reason}
        </p>
      )}
      <GuardFacts guard={guard} />
      <GuardCharts activity={guard.activity} />
      <h3>Outages</h3>
      <Outages transitions={guard.transitions} />
      <div class="guard-cli">
        <CliLine line={`konverge guard show ${quote(cluster)}`} />
      </div>
    </section>
  );
}

function OutageNote({
  outage: { since, lastError, recoveringSince },
}: {
  readonly outage: NonNullable<GuardView["breaker"]["outage"]>;
}) {
  return (
    <p class={`note ${recoveringSince === undefined ? "bad" : "warn"}`}>
      <strong>{recoveringSince === undefined ? "Failing" : "Recovering"}</strong>. The outage began{" "}
      <Time at={since} />.
      {recoveringSince === undefined ? null : (
        <>
          {" "}
          The last failure was <Time at={recoveringSince} />.
        </>
      )}
      {lastError === undefined ? null : ` Last error: ${lastError}.`}
    </p>
  );
}

function GuardCharts({ activity }: Pick<GuardView, "activity">) {
  const items = useMemo(() => completeMinutes(activity), [activity]);
  const charts = useMemo(
    () => ({ calls: callsChart(items, HEIGHT), waiting: waitingCallsChart(items, HEIGHT) }),
    [items],
  );
  return (
    <div class="guard-charts">
      <div class="charts">
        <Chart title="API calls" summary={callsText(items)} data={charts.calls} />
        <Chart
          title="Calls that wait for a token"
          summary={waitingCallsText(items)}
          data={charts.waiting}
        />
      </div>
      <MinuteTable items={items} of="guard" />
    </div>
  );
}

/** What an isolation stops. */
function IsolationPreview({ guard: { cluster, workers } }: { readonly guard: GuardView }) {
  const { data, trouble } = useQuery<QueueList>(
    `v1/queues?cluster=${encodeURIComponent(cluster)}`,
    0,
    { isPartOfPage: false },
  );
  const sum = (of: "waiting" | "active" | "delayed") =>
    (data?.items ?? []).reduce((total, queue) => total + queue[of], 0);
  return (
    <>
      All workers, including {plural(workers.live.length, "worker")} active in the last 10 s, stop
      calling the API server of {cluster} until the guard is reset. Requests stay queued; running
      attempts are deferred.
      <p role="status">
        {data === undefined
          ? (trouble?.detail ?? "Counting…")
          : `Affected now: ${plural(data.items.length, "controller")}, ${plural(data.workflows.length, "workflow")}, ${plural(sum("active"), "running attempt")}, ${plural(sum("waiting"), "waiting request")}, ${plural(sum("delayed"), "delayed request")}.`}
      </p>
    </>
  );
}

function GuardActions({
  guard,
  onDone,
}: {
  readonly guard: GuardView;
  readonly onDone: () => void;
}) {
  const { cluster, breaker, rate } = guard;
  const action = (kind: "isolate" | "reset", message: string) => async (given: object) => {
    await call(`v1/guards/${encodeURIComponent(cluster)}/${kind}`, { method: "POST", body: given });
    onDone();
    return message;
  };
  return (
    <div class="buttons">
      <ActionButton
        label="Set rate"
        explains={`For all workers on ${cluster} together, until the rate is changed again. Configured: ${formatRate(rate.limits.ratePerSecond)} per second.`}
        fields={
          <label>
            Calls per second
            <input
              name="ratePerSecond"
              type="number"
              min="0.1"
              step="any"
              placeholder="as configured"
              defaultValue={rate.override === undefined ? "" : String(rate.override.ratePerSecond)}
            />
          </label>
        }
        run={async (given, fields) => {
          const text = fields.get("ratePerSecond");
          const ratePerSecond = typeof text === "string" && text !== "" ? Number(text) : null;
          const path = `v1/guards/${encodeURIComponent(cluster)}/rate`;
          await call(path, { method: "PUT", body: { ratePerSecond, ...given } });
          onDone();
          return ratePerSecond === null
            ? "Configured rate restored"
            : `${ratePerSecond} calls per second`;
        }}
      />
      {breaker.state === "isolated" ? null : (
        <ActionButton
          label="Isolate"
          danger
          explains={<IsolationPreview guard={guard} />}
          run={action("isolate", `${cluster} is isolated`)}
        />
      )}
      {breaker.state === "closed" ? null : (
        <ActionButton
          label="Reset"
          explains={`Closes the breaker of ${cluster} and clears its counters. Calls resume immediately.`}
          run={action("reset", `The guard of ${cluster} is reset`)}
        />
      )}
    </div>
  );
}
