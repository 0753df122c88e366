import type { AttemptRecord } from "@konverge/records";
import type { Contention, ObjectHistory } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { partsOf } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { viewHref } from "../state/cluster.ts";
import { href } from "../state/router.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Attempts } from "./object/attempts.tsx";
import { ContentionPanel } from "./object/contention-panel.tsx";
import { ObjectFacts } from "./object/object-facts.tsx";
import { ObjectActions } from "./object/object-actions.tsx";

/** Segments of the address, percent-encoded; `_` stands for "no namespace". */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
}

const EVERY_MS = 5_000;

/** The state of an object and its attempts: triggers, waits, writes and conflicts. */
export function ObjectView({ target }: { readonly target: Target }) {
  const { cluster, controller, namespace, name } = target;
  const path = `v1/objects/${cluster}/${controller}/${namespace}/${name}`;
  const history = useQuery<ObjectHistory>(path, EVERY_MS);
  const contention = useQuery<Contention>(`${path}/contention`, EVERY_MS);
  const shown = useHeldBack(history.data);
  const title = decodeURIComponent(name);
  const where = namespace === "_" ? "" : ` -n ${quote(decodeURIComponent(namespace))}`;
  const line = `konverge object history ${quote(decodeURIComponent(controller))} ${quote(title)}${where}`;

  if (history.data === undefined) {
    return (
      <>
        <h1>{title}</h1>
        {history.trouble?.code === "not_found" ? (
          <Empty title="No requests for this object yet">
            <p>Enqueue the object to see its first attempt:</p>
            <CliLine line={line.replace("object history", "reconcile enqueue")} />
          </Empty>
        ) : (
          <TroubleNote trouble={history.trouble} />
        )}
        {history.loading ? <Loading /> : null}
      </>
    );
  }
  const { data } = history;
  const parts = partsOf(data.key);
  return (
    <>
      <header class="object-head">
        <div>
          <p class="crumbs">
            <a href={viewHref("/attempts", { controller: parts.controller })}>{parts.controller}</a>
            <span aria-hidden="true">/</span>
            {parts.namespace === undefined ? (
              <span>cluster-scoped</span>
            ) : (
              <a
                href={viewHref("/objects", {
                  controller: parts.controller,
                  namespace: parts.namespace,
                })}
              >
                {parts.namespace}
              </a>
            )}
          </p>
          <h1>{parts.name}</h1>
          <p class="dim small">
            {parts.resource} on {parts.cluster}
          </p>
        </div>
        <ObjectActions history={data} parts={parts} onDone={history.reload} />
      </header>
      <TroubleNote trouble={history.trouble} />
      <ObjectFacts history={data} />
      {contention.data === undefined ? null : <ContentionPanel contention={contention.data} />}
      <Attempts attempts={shown.attempts} fresh={shown.fresh} onShowFresh={shown.show} />
      <CliLine line={line} />
      <p class="dim small links">
        <a href={viewHref("/attempts", { name: parts.name })}>
          Attempts of all controllers with this name
        </a>
        <a href={href(`/jobs/queue/${controller}`)}>Raw jobs of {parts.controller}</a>
      </p>
    </>
  );
}

/** Holds new attempts back until a click, so that rows do not move under the mouse. */
function useHeldBack(data: ObjectHistory | undefined): {
  readonly attempts: readonly AttemptRecord[];
  readonly fresh: number;
  readonly show: () => void;
} {
  const [upTo, setUpTo] = useState<string>();
  const newest = data?.attempts[0]?.id;
  if (upTo === undefined && newest !== undefined) setUpTo(newest);
  const attempts = data?.attempts ?? [];
  const at = attempts.findIndex(({ id }) => id === upTo);
  const fresh = Math.max(0, at);
  return { attempts: attempts.slice(fresh), fresh, show: () => setUpTo(newest) };
}
