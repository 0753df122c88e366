import type { ApprovalDetail } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { useQuery } from "../api/use-query.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { Fact } from "../parts/fact.tsx";
import { plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { usePageState } from "../parts/page-state.ts";
import { Time } from "../parts/time.tsx";
import { viewHref } from "../state/cluster.ts";
import { href } from "../state/router.ts";
import { ApprovalState, neededText } from "./approval/approval-state.tsx";
import { DecisionButtons } from "./approval/decision-buttons.tsx";
import type { Target } from "./object-view.tsx";
import { PlaceHead, wordsOf } from "./plan/place-head.tsx";
import { PlanChanges, summaryText } from "./plan/plan-changes.tsx";

const EVERY_MS = 5_000;
const SHORT = 12;

/** The plan of one object, with its changes and the decisions about it. */
export function ApprovalView({ target }: { readonly target: Target }) {
  const { cluster, controller, namespace, name } = target;
  const place = `${cluster}/${controller}/${namespace}/${name}`;
  const path = `v1/approvals/${place}`;
  const { data, trouble, loading, reload } = useQuery<ApprovalDetail>(path, EVERY_MS);
  const { shown, isReplaced, show } = useShownPlan(data);
  const [staleText, setStale] = useState<string>();
  const title = decodeURIComponent(name);
  usePageState({
    title: `${title} · approval`,
    tone: data?.state === "awaiting" ? "warn" : undefined,
  });
  const object = href(`/objects/${place}`);
  const isGone = trouble?.code === "not_found";
  return (
    <>
      <PlaceHead
        target={target}
        parent={{ title: "Approvals", href: viewHref("/approvals") }}
        actions={
          shown === undefined || isGone ? null : (
            <DecisionButtons
              approval={shown}
              path={path}
              onDone={(stale) => {
                setStale(stale);
                if (stale !== undefined) show();
                reload();
              }}
            />
          )
        }
      >
        Plan of {title}
      </PlaceHead>
      {staleText === undefined ? null : (
        <div class="note warn" role="alert">
          <strong>The decision was not stored, because the plan is stale:</strong>{" "}
          <span>{staleText}.</span>
          {isGone ? null : <div>The new plan is shown below.</div>}
        </div>
      )}
      {isReplaced && !isGone ? (
        <div class="note warn" role="status">
          <strong>This plan has been replaced,</strong> because objects that it has read have
          changed. It cannot be approved any more.{" "}
          <button type="button" class="quiet" onClick={show}>
            Show the new plan
          </button>
        </div>
      ) : null}
      {isGone ? (
        <Empty title="No plan of this object waits for an approval">
          <p>
            It may have been applied, or the object may no longer need a change.{" "}
            <a href={object}>Open the object</a>
          </p>
        </Empty>
      ) : (
        <TroubleNote trouble={trouble} />
      )}
      {shown === undefined ? (
        loading && <Loading />
      ) : isGone ? null : (
        <>
          <ApprovalFacts approval={shown} />
          <h2>Changes</h2>
          {shown.plan === undefined ? (
            <div class="note warn">
              The changes of this plan are no longer stored, or the worker has another version.
              Request the object to plan it again.
            </div>
          ) : (
            <PlanChanges plan={shown.plan} />
          )}
        </>
      )}
      <CliLine line={`konverge approval show ${wordsOf(target)}`} />
    </>
  );
}

/**
 * Keeps the plan that the user reads when another one replaces it, because a decision is about the shown plan. `show` continues with
 * the current plan.
 */
function useShownPlan(data: ApprovalDetail | undefined): {
  readonly shown: ApprovalDetail | undefined;
  readonly isReplaced: boolean;
  readonly show: () => void;
} {
  const [kept, setKept] = useState<ApprovalDetail>();
  /** The hash of a plan that the user has left. */
  const [left, setLeft] = useState<string>();
  const isReplaced =
    kept !== undefined && data !== undefined && kept.hash !== data.hash && kept.hash !== left;
  // A plan is kept with the latest decisions about it.
  if (data !== undefined && data !== kept && !isReplaced) setKept(data);
  return {
    shown: isReplaced ? kept : data,
    isReplaced,
    show: () => setLeft(kept?.hash),
  };
}

function ApprovalFacts({ approval }: { readonly approval: ApprovalDetail }) {
  const { state, summary, requesters, since, replaced, hash, rejected } = approval;
  return (
    <dl class="facts">
      <Fact title="State" note={rejected && `by ${rejected.by}: ${rejected.reason}`}>
        <ApprovalState of={state} />
      </Fact>
      <Fact
        title="Approvals"
        note={approval.approvals.map(({ by, at }) => (
          <div key={by}>
            {by}, <Time at={at} />
          </div>
        ))}
      >
        {neededText(approval)}
      </Fact>
      <Fact title="Requested by" note={requesters.length === 0 ? undefined : "may not approve"}>
        {requesters.length === 0 ? "changes of objects" : requesters.join(", ")}
      </Fact>
      <Fact title="Waiting since">
        <Time at={since} />
      </Fact>
      <Fact title="Changes">{summaryText(summary)}</Fact>
      <Fact
        title="Plan"
        note={replaced === 0 ? undefined : `${plural(replaced, "earlier plan")} replaced`}
      >
        <code>{hash.slice(0, SHORT)}</code>
      </Fact>
    </dl>
  );
}
