import { defined, shortName } from "@konverge/core";
import type { ControllerList, KeyItem, KeyList, ReleaseResponse } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { call, CallError } from "../api/call.ts";
import { partsOf, type KeyParts } from "../api/object-key.ts";
import { useQuery } from "../api/use-query.ts";
import { apiPath, cluster } from "../state/cluster.ts";
import { objectHref, query } from "../state/router.ts";
import { CliLine, flagsOf } from "../parts/cli-line.tsx";
import { ErrorCode } from "../parts/error-code.tsx";
import { Filter, Filters, filtersOf } from "../parts/filters.tsx";
import { formatCount, plural } from "../parts/format.ts";
import { Empty, Loading, TroubleNote } from "../parts/notice.tsx";
import { ActionButton } from "../parts/action-dialog.tsx";
import { Pager } from "../parts/pager.tsx";
import { SelectBox, SelectionBar, useSelection, type Selection } from "../parts/selection.tsx";
import { ErrorGroups } from "./dead-letters/error-groups.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

const LIMIT = 100;
const EVERY_MS = 10_000;

const nameOf = ({ name }: ControllerList["items"][number]) => name;

/** Dead-lettered objects and their release. A bulk release covers all matches, on every page. */
export function DeadLettersView() {
  const filters = filtersOf(["name", "namespace", "controller"]);
  const cursor = query.value.get("cursor") ?? undefined;
  const { data, trouble, loading, reload } = useQuery<KeyList>(
    apiPath("dead-letters", { ...filters, cursor, limit: String(LIMIT) }),
    EVERY_MS,
  );
  const controllers = [
    ...new Set([
      ...(filters["controller"] === undefined ? [] : [filters["controller"]]),
      ...(data?.items ?? []).map(({ key }) => partsOf(key).controller),
    ]),
  ];
  const known = useQuery<ControllerList>(apiPath("controllers"), 0, { isPartOfPage: false });
  const selection = useSelection();
  const only = controllers.length === 1 ? controllers[0] : undefined;
  return (
    <>
      <div class="title-row">
        <h1>Dead letters</h1>
        {only === undefined || (data?.items.length ?? 0) === 0 ? null : (
          <BulkRelease
            controller={only}
            namespace={filters["namespace"]}
            contains={filters["name"]}
            onDone={reload}
          />
        )}
      </div>
      <p class="lead">
        A dead-lettered object is not retried until it changes or an operator releases it.
      </p>
      <Filters>
        <Filter name="name" label="Name" placeholder="any part" />
        <Filter name="namespace" label="Namespace" />
        <Filter
          name="controller"
          label="Controller"
          choices={known.data?.items.map(nameOf) ?? []}
        />
      </Filters>
      <TroubleNote trouble={trouble} />
      <div aria-busy={loading}>
        {data === undefined ? (
          trouble === undefined && <Loading />
        ) : data.items.length === 0 && data.next === undefined ? (
          <Empty title="No dead letters">
            <p>
              {Object.keys(filters).length === 0
                ? "All failed objects are still retried."
                : "No matches for these filters."}
            </p>
          </Empty>
        ) : (
          <>
            {only === undefined ? (
              <p class="dim">Filter by controller to release all matches.</p>
            ) : null}
            <ErrorGroups items={data.items} onDone={reload} />
            <SelectionBar
              selection={selection}
              shown={data.items.map(({ key }) => key)}
              actions={["release", "pause"]}
              onDone={reload}
            />
            <DeadLetterTable items={data.items} selection={selection} onDone={reload} />
            <Pager next={data.next} shown={plural(data.items.length, "dead letter")} />
          </>
        )}
      </div>
      <CliLine line={["konverge dead-letter list", ...flagsOf(filters)].join(" ")} />
    </>
  );
}

interface Match {
  readonly controller: string;
  readonly namespace: string | undefined;
  /** Any part of the name. */
  readonly contains: string | undefined;
}

async function release(match: object, dryRun: boolean, action: object): Promise<number> {
  const body = { cluster: cluster.value, ...match, ...action, dryRun };
  const { count } = await call<ReleaseResponse>("v1/dead-letters/release", {
    method: "POST",
    body,
  });
  return count;
}

/** Releases all matches. The dialog shows their number first. */
function BulkRelease({
  controller,
  namespace,
  contains,
  onDone,
}: Match & { readonly onDone: () => void }) {
  const match = {
    controller,
    ...defined({ namespace, contains }),
  };
  return (
    <ActionButton
      label="Release all matches"
      explains={<Preview match={match} />}
      run={async (action) => {
        const count = await release(match, false, action);
        onDone();
        return `${plural(count, "dead letter")} released`;
      }}
    />
  );
}

function Preview({ match }: { readonly match: { readonly controller: string } }) {
  const [text, setText] = useState("Counting…");
  useEffect(() => {
    release(match, true, { by: "dashboard", reason: "preview" }).then(
      (count) =>
        setText(
          `${plural(count, "object")} of ${match.controller} will be retried, including those on other pages.`,
        ),
      (error: unknown) => setText(error instanceof CallError ? error.message : String(error)),
    );
  }, []);
  return <span role="status">{text}</span>;
}

const columnsOf = (selection: Selection): readonly Column<KeyItem>[] => [
  {
    title: "Object",
    cell: ({ key }) => (
      <>
        <SelectBox objectKey={key} selection={selection} />
        <a class="strong" href={objectHref(key)} data-row>
          {shortName(partsOf(key))}
        </a>
        <div class="dim small">{partsOf(key).controller}</div>
      </>
    ),
  },
  {
    title: "Failures",
    look: "num right",
    cell: ({ failures }) => formatCount(failures),
  },
  {
    title: "Failed with",
    look: "wide",
    cell: ({ deadLetter }) =>
      deadLetter?.error === undefined ? (
        <span class="dim">not reported</span>
      ) : (
        <span class="clip" title={deadLetter.error.message}>
          <ErrorCode code={deadLetter.error.code} look="dim" />
          {deadLetter.error.message}
        </span>
      ),
  },
  {
    title: "Since",
    look: "right nowrap",
    cell: ({ deadLetter }) => (deadLetter === undefined ? null : <Time at={deadLetter.since} />),
  },
];

function DeadLetterTable({
  items,
  selection,
  onDone,
}: {
  readonly items: readonly KeyItem[];
  readonly selection: Selection;
  readonly onDone: () => void;
}) {
  const actions: Column<KeyItem> = {
    title: "Actions",
    isTitleHidden: true,
    look: "right",
    cell: ({ key }) => <ReleaseButton parts={partsOf(key)} onDone={onDone} />,
  };
  return (
    <div class="panel">
      <Table
        caption="Dead letters by name"
        columns={[...columnsOf(selection), actions]}
        rows={items}
        keyOf={({ key }) => key}
      />
    </div>
  );
}

function ReleaseButton({
  parts,
  onDone,
}: {
  readonly parts: KeyParts;
  readonly onDone: () => void;
}) {
  const { controller, namespace, name } = parts;
  const target = { controller, name, ...defined({ namespace }) };
  return (
    <ActionButton
      label="Release"
      quiet
      explains={`${shortName(parts)} is retried with its counters reset.`}
      run={async (action) => {
        await release(target, false, action);
        onDone();
        return `${name} is retried`;
      }}
    />
  );
}
