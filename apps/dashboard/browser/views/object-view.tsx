import { shortName } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import type { Explanation, LiveObject, ObjectHistory } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { partsOf, type KeyParts } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { viewHref } from "../state/cluster.ts";
import { href, path as page, query } from "../state/router.ts";
import { CliLine, quote } from "../parts/cli-line.tsx";
import { Lazy } from "../parts/lazy.tsx";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { usePageState } from "../parts/page-state.ts";
import { Tabs } from "../parts/tabs.tsx";
import { Attempts } from "./object/attempts.tsx";
import { ContentionPanel } from "./object/contention-panel.tsx";
import { toneOfObject } from "./object/current-contention.ts";
import { ExplanationPanel } from "./object/explanation-panel.tsx";
import { LiveCards } from "./object/live-cards.tsx";
import { Hints, ObjectFacts } from "./object/object-facts.tsx";
import { ObjectActions } from "./object/object-actions.tsx";
import { ObjectSentence } from "./object/object-sentence.tsx";

/** Segments of the address, percent-encoded; `_` stands for "no namespace". */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
}

const EVERY_MS = 5_000;
/** Each read costs two calls of the API server. */
const LIVE_EVERY_MS = 15_000;
const NOT_OF_THE_PAGE = { isPartOfPage: false };

/** The object, its state, and its attempts: triggers, waits, writes and conflicts. */
export function ObjectView({ target }: { readonly target: Target }) {
  const { cluster, controller, namespace, name } = target;
  const path = `v1/objects/${cluster}/${controller}/${namespace}/${name}`;
  const history = useQuery<ObjectHistory>(path, EVERY_MS);
  const live = useQuery<LiveObject>(`${path}/live`, LIVE_EVERY_MS, NOT_OF_THE_PAGE);
  const explanation = useQuery<Explanation>(`${path}/explanation`, LIVE_EVERY_MS, NOT_OF_THE_PAGE);
  const title = decodeURIComponent(name);
  const where = namespace === "_" ? "" : ` -n ${quote(decodeURIComponent(namespace))}`;
  const line = `konverge object history ${quote(decodeURIComponent(controller))} ${quote(title)}${where}`;
  const { data } = history;
  usePageState({
    title: `${title} · ${decodeURIComponent(controller)}`,
    tone: data && toneOfObject(data),
  });
  if (data === undefined) {
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
  const parts = partsOf(data.key);
  return (
    <>
      <Head data={data} parts={parts} onDone={history.reload} />
      <TroubleNote trouble={history.trouble} />
      <div class="object-page">
        <aside class="object-aside" aria-label="Summary">
          <div class="aside-top">
            <ObjectSentence history={data} />
            <ObjectFacts history={data} />
          </div>
          <div class="aside-live">
            <LiveCards live={live.data ?? unavailable(live.trouble?.detail)} />
            <CliLine line={kubectlLine(parts)} />
            <CliLine line={line} />
            <p class="small links">
              <a href={viewHref("/attempts", { name: parts.name })}>Attempts of all controllers</a>
              <a href={href(`/jobs/queue/${controller}`)}>Raw jobs</a>
            </p>
          </div>
        </aside>
        <div class="object-main">
          {explanation.data === undefined ? null : (
            <ExplanationPanel explanation={explanation.data} controller={parts.controller} />
          )}
          <Hints attempts={data.attempts} />
          <ContentionPanel contention={data.contention} />
          <Parts history={data} live={live.data} />
        </div>
      </div>
    </>
  );
}

function unavailable(message: string | undefined): LiveObject | undefined {
  return message === undefined ? undefined : { kind: "unavailable", code: "internal", message };
}

function kubectlLine({ resource, namespace, name }: KeyParts): string {
  const where = namespace === undefined ? "" : ` -n ${quote(namespace)}`;
  return `kubectl get ${quote(resource)} ${quote(name)}${where} -o yaml`;
}

function Head({
  data,
  parts,
  onDone,
}: {
  readonly data: ObjectHistory;
  readonly parts: KeyParts;
  readonly onDone: () => void;
}) {
  const { controller, namespace } = parts;
  return (
    <header class="object-head">
      <div>
        <p class="crumbs">
          <a href={viewHref(`/controllers/${encodeURIComponent(controller)}`)}>{controller}</a>
          <span aria-hidden="true">/</span>
          {namespace === undefined ? (
            <span>cluster-scoped</span>
          ) : (
            <a href={viewHref("/objects", { controller, namespace })}>{namespace}</a>
          )}
        </p>
        <h1 title={shortName(parts)}>{parts.name}</h1>
        <p class="dim small">
          {parts.resource} on {parts.cluster}
        </p>
      </div>
      <ObjectActions history={data} parts={parts} onDone={onDone} />
    </header>
  );
}

const loadYaml = () => import("./object/yaml-view.tsx");
const loadCompare = () => import("./object/compare-view.tsx");

/** The parts of the page: attempts, the object, its events, and a comparison of attempts. */
function Parts({
  history,
  live,
}: {
  readonly history: ObjectHistory;
  readonly live: LiveObject | undefined;
}) {
  const shown = useHeldBack(history);
  const current = query.value.get("tab") ?? "attempts";
  const to = (tab: string) => {
    const { tab: _tab, ...rest } = Object.fromEntries(query.value);
    return href(page.value, { ...rest, tab: tab === "attempts" ? undefined : tab });
  };
  const tab = (id: string, title: string, count?: number) => ({
    title,
    count,
    href: to(id),
    isCurrent: id === current,
  });
  const found = live?.kind === "found" ? live : undefined;
  return (
    <>
      <Tabs
        label="Parts of the page"
        tabs={[
          tab("attempts", "Attempts", history.attempts.length),
          tab("yaml", "YAML"),
          { ...tab("events", "Events", found?.events.length), isCounting: live === undefined },
          tab("compare", "Compare"),
        ]}
      />
      {current === "yaml" ? (
        found === undefined ? (
          <NoObject live={live} />
        ) : (
          <Lazy load={loadYaml}>{({ YamlView }) => <YamlView live={found} />}</Lazy>
        )
      ) : current === "events" ? (
        <Lazy load={loadYaml}>{({ EventTable }) => <EventTable live={live} />}</Lazy>
      ) : current === "compare" ? (
        <Lazy load={loadCompare}>
          {({ CompareView }) => <CompareView attempts={history.attempts} />}
        </Lazy>
      ) : (
        <Attempts attempts={shown.attempts} fresh={shown.fresh} onShowFresh={shown.show} />
      )}
    </>
  );
}

function NoObject({ live }: { readonly live: LiveObject | undefined }) {
  if (live === undefined) return <Loading />;
  return (
    <Empty title={live.kind === "missing" ? "Object not found" : "The object cannot be read"}>
      <p>
        {live.kind === "unavailable"
          ? `${live.message}.`
          : "The cluster has no such object for the controller."}{" "}
        The attempts are shown from Redis.
      </p>
    </Empty>
  );
}

/** Holds new attempts back until a click, so that rows do not move under the mouse. */
function useHeldBack({ attempts }: ObjectHistory): {
  readonly attempts: readonly AttemptRecord[];
  readonly fresh: number;
  readonly show: () => void;
} {
  const [upTo, setUpTo] = useState<string>();
  const newest = attempts[0]?.id;
  if (upTo === undefined && newest !== undefined) setUpTo(newest);
  const at = attempts.findIndex(({ id }) => id === upTo);
  const fresh = Math.max(0, at);
  return { attempts: attempts.slice(fresh), fresh, show: () => setUpTo(newest) };
}
