import type { GuardList } from "@konverge/contracts";
import { Fact } from "../../parts/fact.tsx";
import { formatCount, formatRate, plural } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

type GuardView = GuardList["items"][number];

const MINUTE_S = 60;

/** The use of the allowed rate, the queue by class, and the reports of the workers. */
export function GuardFacts({ guard }: { readonly guard: GuardView }) {
  const { breaker, workers, inFlight } = guard;
  const { recent, consecutiveOpenings, consecutiveFailures } = breaker;
  const failing = workers.failing.length;
  const live = workers.live.length;
  return (
    <dl class="facts">
      <Allowance guard={guard} />
      <Fact title="Waiting for a token" note={classesOf(guard.waitingCalls)}>
        <span class="num">{formatCount(sumOf(guard.waitingCalls))}</span>
      </Fact>
      <Fact title="In flight" note="from all workers">
        <span class="num">{formatCount(inFlight)}</span>
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
          failing > 0 ? (
            <Status tone="bad">{`${failing} failing`}</Status>
          ) : live === 0 ? (
            "none in the last 10 s"
          ) : (
            "none failing"
          )
        }
      >
        <span class="num">{live}</span>
      </Fact>
      <Fact title="Times opened" note={plural(consecutiveFailures, "consecutive failure")}>
        <span class="num">{consecutiveOpenings}</span>
      </Fact>
    </dl>
  );
}

/** Used and allowed calls. The bar shows the used share. */
function Allowance({ guard: { rate, activity } }: { readonly guard: GuardView }) {
  const { current, limits, override, pausedUntil } = rate;
  const most = override?.ratePerSecond ?? limits.ratePerSecond;
  const calls = activity.at(-2)?.calls;
  const used = calls === undefined ? undefined : calls / MINUTE_S;
  const note =
    pausedUntil !== undefined ? (
      <>
        the server requested a pause until <Time at={pausedUntil} />
      </>
    ) : override !== undefined ? (
      `set by ${override.by}: ${override.reason}`
    ) : current < most ? (
      `lowered from ${formatRate(most)} by failures, rises by itself`
    ) : (
      "used of allowed"
    );
  return (
    <Fact title="Calls per second" note={note}>
      <span class="num">
        {used === undefined ? "–" : formatRate(used)} of {formatRate(current)}
      </span>
      <meter
        min={0}
        max={Math.max(current, used ?? 0)}
        value={used ?? 0}
        aria-label="Calls used as a share of the allowed rate"
      />
    </Fact>
  );
}

function classesOf(waiting: GuardView["waitingCalls"]): string {
  const classes = Object.entries(waiting).toSorted(([, one], [, other]) => other - one);
  return classes.length === 0
    ? "no calls"
    : classes.map(([name, count]) => `${formatCount(count)} ${name}`).join(", ");
}

function sumOf(waiting: GuardView["waitingCalls"]): number {
  return Object.values(waiting).reduce((sum, count) => sum + count, 0);
}
