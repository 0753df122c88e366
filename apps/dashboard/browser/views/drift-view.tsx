import { shortName } from "@konverge/core";
import type { DriftDetail, DriftList } from "@konverge/contracts";
import { partsOf } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatCount, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { apiPath, viewHref } from "../state/cluster.ts";
import { driftHref, href } from "../state/router.ts";
import { PlanChanges, summaryText } from "./plan/plan-changes.tsx";
import type { Target } from "./object-view.tsx";
import { PlaceHead, wordsOf } from "./plan/place-head.tsx";

const EVERY_MS = 10_000;

type Group = DriftList["groups"][number];
type Item = DriftList["items"][number];

/** The changes that observing controllers would make: groups of equal changes, then the objects. */
export function DriftView() {
  const filters = filtersOf(["controller", "namespace"]);
  const { data, trouble, loading } = useQuery<DriftList>(apiPath("drift", filters), EVERY_MS);
  return (
    <>
      <h1>Drift</h1>
      <p class="lead">
        Changes that controllers with the mode <code>observe</code> would make. They only plan.
      </p>
      <Filters>
        <Filter name="controller" label="Controller" />
        <Filter name="namespace" label="Namespace" />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading />
        ) : data.items.length === 0 ? (
          <Empty title={data.controllers.length === 0 ? "No controller observes" : "No drift"}>
            <p>
              {data.controllers.length === 0
                ? 'Set the mode "observe" of a controller to see what it would change.'
                : `Nothing to change by ${data.controllers.join(", ")}.`}
            </p>
          </Empty>
        ) : (
          <>
            <h2>Equal changes</h2>
            <div class="panel">
              <Table
                caption="Equal changes, the most frequent first"
                columns={GROUPS}
                rows={data.groups}
                keyOf={({ controller, kind, action, fields, managers }) =>
                  JSON.stringify([controller, kind, action, fields, managers])
                }
              />
            </div>
            <h2>{plural(data.objects, "object")}</h2>
            <div class="panel">
              <Table
                caption="Objects with drift, oldest first"
                columns={ITEMS}
                rows={data.items}
                keyOf={({ key }) => key}
              />
            </div>
            {data.objects > data.items.length ? (
              <p class="dim">
                and {plural(data.objects - data.items.length, "more object")}; filter to see them
              </p>
            ) : null}
          </>
        )}
      </div>
      <CliLine line={["konverge drift list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

const none = <span class="dim">unknown</span>;

const GROUPS: readonly Column<Group>[] = [
  {
    title: "Change",
    cell: ({ kind, action, controller }) => (
      <>
        <span class="strong">
          {kind} {action}
        </span>
        <div class="dim small">{controller}</div>
      </>
    ),
  },
  { title: "Objects", look: "num right", cell: ({ count }) => formatCount(count) },
  {
    title: "Fields",
    look: "wide",
    cell: ({ fields }) => fields.map((field) => <div key={field}>{<code>{field}</code>}</div>),
  },
  {
    title: "Moved by",
    cell: ({ managers }) => (managers.length === 0 ? none : managers.join(", ")),
  },
  {
    title: "Examples",
    look: "secondary",
    cell: ({ examples }) =>
      examples.map((key) => (
        <div key={key}>
          <a href={driftHref(key)}>{shortName(partsOf(key))}</a>
        </div>
      )),
  },
  { title: "Since", look: "right nowrap", cell: ({ since }) => <Time at={since} /> },
];

const ITEMS: readonly Column<Item>[] = [
  {
    title: "Object",
    cell: (item) => (
      <>
        <a class="strong" href={driftHref(item.key)} data-row>
          {shortName(item)}
        </a>
        <div class="dim small">{item.controller}</div>
      </>
    ),
  },
  { title: "Changes", cell: ({ summary }) => summaryText(summary) },
  {
    title: "Moved by",
    cell: ({ changes }) => {
      const moved = changes.flatMap((change) => change.moved);
      const managers = [...new Set(moved.map(({ manager }) => manager))];
      return managers.length === 0 ? none : managers.join(", ");
    },
  },
  { title: "Since", look: "right nowrap", cell: ({ since }) => <Time at={since} /> },
];

/** The changes of one object, with the managers that own its fields. */
export function DriftObjectView({ target }: { readonly target: Target }) {
  const { cluster, controller, namespace, name } = target;
  const place = `${cluster}/${controller}/${namespace}/${name}`;
  const { data, trouble, loading } = useQuery<DriftDetail>(`v1/drift/${place}`, EVERY_MS);
  const isGone = trouble?.code === "not_found";
  const moved = data?.changes.flatMap((change) =>
    change.moved.map((each) => ({ ...each, of: `${change.resource} ${shortName(change)}` })),
  );
  return (
    <>
      <PlaceHead target={target} parent={{ title: "Drift", href: viewHref("/drift") }}>
        Drift of {decodeURIComponent(name)}
      </PlaceHead>
      {isGone ? (
        <Empty title="No drift">
          <p>
            The controller would change nothing for this object, or it does not observe.{" "}
            <a href={href(`/objects/${place}`)}>Open the object</a>
          </p>
        </Empty>
      ) : (
        <TroubleNote trouble={trouble} />
      )}
      {data === undefined ? (
        loading && <Loading />
      ) : isGone ? null : (
        <>
          <p>
            {summaryText(data.summary)}; first seen <Time at={data.since} />, planned{" "}
            <Time at={data.at} />.
          </p>
          {moved === undefined || moved.length === 0 ? null : (
            <>
              <h2>Moved by</h2>
              <div class="panel">
                <Table
                  caption="Managers of the fields"
                  columns={MOVED}
                  rows={moved}
                  keyOf={({ manager, path, of }) => `${manager} ${of} ${path}`}
                />
              </div>
            </>
          )}
          <h2>Changes</h2>
          {data.plan === undefined ? (
            <div class="note warn">
              The plan is no longer stored, or the worker has another version.
            </div>
          ) : (
            <PlanChanges plan={data.plan} />
          )}
        </>
      )}
      <CliLine line={`konverge drift show ${wordsOf(target)}`} />
    </>
  );
}

const MOVED: readonly Column<Item["changes"][number]["moved"][number] & { readonly of: string }>[] =
  [
    { title: "Manager", look: "strong", cell: ({ manager }) => manager },
    {
      title: "Field",
      look: "wide",
      cell: ({ path, of }) => (
        <>
          <code>{path}</code>
          <div class="dim small">{of}</div>
        </>
      ),
    },
    {
      title: "Last write",
      look: "right nowrap",
      cell: ({ at }) => (at === undefined ? none : <Time at={at} />),
    },
  ];
