import type { LiveObject } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { Status, type Tone } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { objectHref } from "../../state/router.ts";

export type FoundObject = Extract<LiveObject, { kind: "found" }>;
type Link = FoundObject["owners"][number];

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

/** The conditions of the object, its owners and its children. */
export function LiveCards({ live }: { readonly live: LiveObject | undefined }) {
  if (live === undefined)
    return (
      <Card title="Conditions">
        <p class="dim">Reading…</p>
      </Card>
    );
  if (live.kind === "missing") {
    return (
      <Card title="Object">
        <p class="dim">
          The cluster has no such object for the controller. It was deleted, not created yet, or is
          outside of the namespaces and selectors of the controller.
        </p>
      </Card>
    );
  }
  if (live.kind === "unavailable") {
    return (
      <Card title="Object">
        <p class="dim">The object cannot be read: {live.message}.</p>
      </Card>
    );
  }
  return (
    <>
      <Conditions live={live} />
      <Related live={live} />
    </>
  );
}

function Card({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Conditions({ live }: { readonly live: FoundObject }) {
  const found = conditionsOf(live);
  const deletedAt = textOf(metadataOf(live)["deletionTimestamp"]);
  return (
    <Card title="Conditions">
      {deletedAt === undefined ? null : (
        <p>
          <Status tone="warn">Terminating</Status> since <Time at={deletedAt} />
        </p>
      )}
      {found.length === 0 ? (
        <p class="dim">
          {live.isRedacted ? "Not shown: the kind is sensitive." : "The object has no conditions."}
        </p>
      ) : (
        <ul class="conditions">
          {found.map(({ type, status, reason, message, lastTransitionTime }) => (
            <li key={type}>
              <div class="title-line">
                <Status tone={toneOf(type, status)}>{type}</Status>
                <span class="dim">{status === "True" ? "" : status}</span>
                {lastTransitionTime === undefined ? null : (
                  <span class="dim small right">
                    <Time at={lastTransitionTime} />
                  </span>
                )}
              </div>
              <div class="dim small">
                {[reason, message].filter((text) => text !== undefined && text !== "").join(": ")}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Conditions that are bad when true, as in Kubernetes and kstatus. */
const ABNORMAL = /^(Stalled|Failed|Degraded|.*Pressure|NetworkUnavailable|ReplicaFailure)$/;

function toneOf(type: string, status: string): Tone {
  if (status === "Unknown") return "idle";
  if (type === "Reconciling" || type === "Progressing") return status === "True" ? "run" : "idle";
  if (ABNORMAL.test(type)) return status === "True" ? "bad" : "good";
  return status === "True" ? "good" : "warn";
}

function conditionsOf({ object, isRedacted }: FoundObject): readonly Condition[] {
  const { status } = object;
  if (isRedacted || typeof status !== "object" || status === null) return [];
  const { conditions } = status as { readonly conditions?: unknown };
  return Array.isArray(conditions)
    ? conditions.filter(
        (each): each is Condition =>
          typeof each === "object" && each !== null && typeof each.type === "string",
      )
    : [];
}

function metadataOf({ object }: FoundObject): Readonly<Record<string, unknown>> {
  return (object["metadata"] ?? {}) as Readonly<Record<string, unknown>>;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Owners, the object and its children, indented. */
function Related({ live }: { readonly live: FoundObject }) {
  const { owners, children, moreChildren, object } = live;
  if (owners.length + children.length === 0) return null;
  const name = textOf(metadataOf(live)["name"]) ?? "";
  return (
    <Card title="Owners and children">
      <ul class="tree">
        {owners.map((owner) => (
          <li key={`${owner.kind}/${owner.name}`}>
            <RelatedObject link={owner} />
          </li>
        ))}
        <li class={owners.length > 0 ? "below" : undefined}>
          <span class="dim">{textOf(object["kind"])}</span> <span class="strong">{name}</span>
          <ul>
            {children.map((child) => (
              <li key={`${child.kind}/${child.namespace ?? ""}/${child.name}`} class="below">
                <RelatedObject link={child} />
              </li>
            ))}
          </ul>
        </li>
      </ul>
      {moreChildren === 0 ? null : <p class="dim small">and {moreChildren} more</p>}
    </Card>
  );
}

const CHILD_TONES: Readonly<Record<string, Tone>> = {
  current: "good",
  inProgress: "run",
  failed: "bad",
  terminating: "warn",
};

function RelatedObject({
  link: { kind, name, key, status, isController },
}: {
  readonly link: Link;
}) {
  return (
    <>
      <span class="dim">{kind}</span>{" "}
      {key === undefined ? <span>{name}</span> : <a href={objectHref(key)}>{name}</a>}
      {isController === true ? <span class="dim small"> controller</span> : null}
      {status === undefined ? null : (
        <span class="small">
          {" "}
          <Status tone={CHILD_TONES[status] ?? "idle"}>
            {status === "inProgress" ? "in progress" : status}
          </Status>
        </span>
      )}
    </>
  );
}
