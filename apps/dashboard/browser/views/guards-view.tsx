import type { GuardList, GuardView } from "@konverge/contracts";
import { call } from "../api/call.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { formatRate, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { ActionButton } from "../parts/action-dialog.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";

const EVERY_MS = 2_000;

/** How each API server is protected from us: tokens, breaker, what happened, and an operator's orders. */
export function GuardsView() {
  const { data, trouble, reload } = useQuery<GuardList>("v1/guards", EVERY_MS);
  return (
    <>
      <h1>Guards</h1>
      <p class="lead">
        All workers of a cluster share one budget of calls and one breaker, so that an API server in
        trouble is left alone by the whole fleet at once.
      </p>
      <TroubleNote trouble={trouble} />
      {data === undefined ? (
        trouble === undefined && <Loading />
      ) : data.items.length === 0 ? (
        <Empty title="No worker has guarded an API server yet">
          <p>A guard appears with the first call of a worker.</p>
        </Empty>
      ) : (
        data.items.map((guard) => <GuardCard key={guard.cluster} guard={guard} onDone={reload} />)
      )}
    </>
  );
}

type Mode = GuardView["breaker"]["state"];
const MODES: Readonly<Record<Mode, readonly [tone: Tone, text: string, means: string]>> = {
  closed: ["good", "closed", "calls are sent"],
  open: ["bad", "open", "no calls are sent"],
  halfOpen: ["warn", "half open", "one probe at a time is sent"],
  isolated: ["bad", "isolated", "a person stopped all calls"],
};

function GuardCard({ guard, onDone }: { readonly guard: GuardView; readonly onDone: () => void }) {
  const { cluster, breaker, rate, workers } = guard;
  const [tone, text, means] = MODES[breaker.state];
  const { current, limits, override, pausedUntil } = rate;
  const most = override?.ratePerSecond ?? limits.ratePerSecond;
  const { recent } = breaker;
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
      {breaker.isolated === undefined ? null : (
        <p class="note bad">
          Isolated by <strong>{breaker.isolated.by}</strong> <Time at={breaker.isolated.at} />:{" "}
          {breaker.isolated.reason}
        </p>
      )}
      <dl class="facts">
        <div>
          <dt>Calls per second</dt>
          <dd>
            <span class="num">
              {formatRate(current)} of {formatRate(most)}
            </span>
            <meter
              min={0}
              max={most}
              value={Math.min(current, most)}
              aria-label="Share of the budget that is allowed now"
            />
            <div class="dim small">
              {override === undefined
                ? `burst ${formatRate(limits.burst)}`
                : `set by ${override.by}: ${override.reason}`}
            </div>
          </dd>
        </div>
        <div>
          <dt>Calls of the last seconds</dt>
          <dd>
            <span class="num">{Math.round(recent.calls)}</span>
            <div class="dim small num">
              {Math.round(recent.failed)} failed, {Math.round(recent.slow)} slow,{" "}
              {Math.round(recent.throttled)} throttled
            </div>
          </dd>
        </div>
        <div>
          <dt>Workers that call</dt>
          <dd>
            <span class="num">{workers.live.length}</span>
            <div class="small">
              {workers.failing.length === 0 ? (
                <span class="dim">none fails</span>
              ) : (
                <Status tone="bad">{`${workers.failing.length} failing`}</Status>
              )}
            </div>
          </dd>
        </div>
        <div>
          <dt>Openings</dt>
          <dd>
            <span class="num">{breaker.consecutiveOpenings}</span>
            <div class="dim small">
              {pausedUntil === undefined ? (
                plural(breaker.consecutiveFailures, "failure") + " in a row"
              ) : (
                <>
                  the server asked for a pause until <Time at={pausedUntil} />
                </>
              )}
            </div>
          </dd>
        </div>
      </dl>
      <History guard={guard} />
      <div class="guard-cli">
        <CliLine line={`konverge guard show ${quote(cluster)}`} />
      </div>
    </section>
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
  const action = (kind: "isolate" | "reset", told: string) => async (given: object) => {
    await call(`v1/guards/${encodeURIComponent(cluster)}/${kind}`, { method: "POST", body: given });
    onDone();
    return told;
  };
  return (
    <div class="buttons">
      <ActionButton
        label="Set rate"
        explains={`For all workers on ${cluster} together, until somebody sets it again. Configured: ${formatRate(rate.limits.ratePerSecond)} per second.`}
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
            ? "Back to the configured rate"
            : `${ratePerSecond} calls per second`;
        }}
      />
      {breaker.state === "isolated" ? null : (
        <ActionButton
          label="Isolate"
          danger
          explains={`No worker calls the API server of ${cluster} any more, until somebody resets the guard. Requests are kept.`}
          run={action("isolate", `${cluster} is isolated`)}
        />
      )}
      {breaker.state === "closed" ? null : (
        <ActionButton
          label="Reset"
          explains={`Calls to ${cluster} are sent again at once, as if nothing had happened.`}
          run={action("reset", `The guard of ${cluster} is reset`)}
        />
      )}
    </div>
  );
}

function History({ guard: { transitions } }: { readonly guard: GuardView }) {
  if (transitions.length === 0) return <p class="more dim">The breaker has never moved.</p>;
  return (
    <table class="stack">
      <caption class="hidden">What the breaker did</caption>
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Became</th>
          <th scope="col">Why</th>
          <th scope="col">Evidence</th>
        </tr>
      </thead>
      <tbody>
        {transitions.slice(0, 12).map((transition) => {
          const [tone, text] = MODES[transition.to];
          return (
            <tr key={transition.generation}>
              <td data-label="When" class="nowrap">
                <Time at={new Date(transition.atMs).toISOString()} />
              </td>
              <td data-label="Became">
                <Status tone={tone}>{text}</Status>
              </td>
              <td data-label="Why">
                {transition.by === undefined
                  ? (REASONS[transition.reason] ?? transition.reason)
                  : `${transition.by}: ${transition.operatorReason ?? ""}`}
              </td>
              <td data-label="Evidence" class="num dim">
                {evidenceOf(transition)}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const REASONS: Readonly<Record<string, string>> = {
  consecutive: "calls failed in a row",
  failedShare: "too many calls failed",
  slow: "too many calls were slow",
  strained: "the server said that it is strained",
  probe: "a probe came back",
  timer: "its time was over",
  operatorAction: "a person ordered it",
};

function evidenceOf({
  calls,
  failed,
  consecutive,
  failingWorkers,
  liveWorkers,
  worker,
}: GuardView["transitions"][number]): string {
  return [
    calls === undefined
      ? ""
      : `${Math.round(failed ?? 0)} of ${plural(Math.round(calls), "call")} failed`,
    consecutive === undefined ? "" : `${consecutive} in a row`,
    failingWorkers === undefined
      ? ""
      : `${failingWorkers} of ${plural(liveWorkers ?? 0, "worker")}`,
    worker === undefined ? "" : `reported by ${worker}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}
