import type { GuardList, GuardView } from "@konverge/contracts";
import { call } from "../api/call.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Fact } from "../parts/fact.tsx";
import { formatRate, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { ActionButton } from "../parts/action-dialog.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { Outages } from "./guard/outages.tsx";

const EVERY_MS = 2_000;

/** The guard of each API server: rate limit, breaker, transitions and operator actions. */
export function GuardsView() {
  const { data, trouble, reload } = useQuery<GuardList>("v1/guards", EVERY_MS);
  return (
    <>
      <h1>Guards</h1>
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

type Mode = GuardView["breaker"]["state"];
const MODES: Readonly<Record<Mode, readonly [tone: Tone, text: string, means: string]>> = {
  closed: ["good", "closed", "calls are sent"],
  open: ["bad", "open", "no calls are sent"],
  halfOpen: ["warn", "half open", "one probe at a time is sent"],
  isolated: ["bad", "isolated", "isolated by an operator"],
};

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

function GuardFacts({ guard: { breaker, rate, workers } }: { readonly guard: GuardView }) {
  const { current, limits, override, pausedUntil } = rate;
  const { recent, consecutiveOpenings, consecutiveFailures } = breaker;
  const most = override?.ratePerSecond ?? limits.ratePerSecond;
  const failing = workers.failing.length;
  const live = workers.live.length;
  return (
    <dl class="facts">
      <Fact
        title="Allowed calls per second"
        note={
          override === undefined
            ? current < most
              ? "lowered by failures, rises by itself"
              : "not lowered"
            : `set by ${override.by}: ${override.reason}`
        }
      >
        <span class="num">
          {formatRate(current)} of {formatRate(most)}
        </span>
        <meter
          min={0}
          max={most}
          value={Math.min(current, most)}
          aria-label="Allowed rate as a share of the configured rate"
        />
      </Fact>
      <Fact
        title="Calls of the last 5 s"
        note={`${Math.round(recent.failed)} failed, ${Math.round(recent.slow)} slow, ${Math.round(recent.throttled)} throttled`}
      >
        <span class="num">{Math.round(recent.calls)}</span>
      </Fact>
      <Fact
        title="Workers reporting"
        note={
          failing === 0 ? (
            live === 0 ? (
              "none in the last 10 s"
            ) : (
              "none failing"
            )
          ) : (
            <Status tone="bad">{`${failing} failing`}</Status>
          )
        }
      >
        <span class="num">{live}</span>
      </Fact>
      <Fact
        title="Times opened"
        note={
          pausedUntil === undefined ? (
            plural(consecutiveFailures, "consecutive failure")
          ) : (
            <>
              the server requested a pause until <Time at={pausedUntil} />
            </>
          )
        }
      >
        <span class="num">{consecutiveOpenings}</span>
      </Fact>
    </dl>
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
          explains={`All workers stop calling the API server of ${cluster} until the guard is reset. Requests stay queued.`}
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
