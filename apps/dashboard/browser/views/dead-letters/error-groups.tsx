import type { KeyItem } from "@konverge/contracts";
import { partsOf } from "../../api/object-key.ts";
import { ObjectBulk } from "../../parts/object-bulk.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

interface Group {
  readonly pattern: string;
  readonly sample: string;
  readonly controllers: readonly string[];
  readonly keys: readonly string[];
  /** Since of the oldest and of the newest. */
  readonly first: string;
  readonly last: string;
}

/** The dead letters of the page by equal errors, most first. Names and numbers in a message do not count. */
export function ErrorGroups({
  items,
  onDone,
}: {
  readonly items: readonly KeyItem[];
  readonly onDone: () => void;
}) {
  const groups = groupsOf(items);
  if (groups.length === items.length) return null;
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">By error</h2>
      <div class="panel">
        <Table
          caption="Errors on this page, most frequent first"
          columns={columnsOf(onDone)}
          rows={groups}
          keyOf={({ pattern }) => pattern}
        />
      </div>
    </section>
  );
}

const columnsOf = (onDone: () => void): readonly Column<Group>[] => [
  { title: "Error", cell: ({ sample }) => <span class="clip">{sample}</span> },
  { title: "Controller", look: "nowrap", cell: ({ controllers }) => controllers.join(", ") },
  { title: "Objects", look: "num right", cell: ({ keys }) => keys.length },
  { title: "First", look: "right nowrap", cell: ({ first }) => <Time at={first} /> },
  { title: "Last", look: "right nowrap", cell: ({ last }) => <Time at={last} /> },
  {
    title: "Actions",
    isTitleHidden: true,
    look: "right nowrap",
    cell: ({ keys }) => (
      <ObjectBulk keys={keys} actions={["release"]} label="Release group" onDone={onDone} />
    ),
  },
];

function groupsOf(items: readonly KeyItem[]): Group[] {
  const groups = Map.groupBy(items, patternOf);
  return [...groups]
    .map(([pattern, members]) => {
      const times = members.map(({ deadLetter }) => deadLetter?.since ?? "").toSorted();
      return {
        pattern,
        sample: members[0]?.deadLetter?.error?.message ?? "not reported",
        controllers: [...new Set(members.map(({ key }) => partsOf(key).controller))],
        keys: members.map(({ key }) => key),
        first: times[0] ?? "",
        last: times.at(-1) ?? "",
      };
    })
    .toSorted((one, other) => other.keys.length - one.keys.length);
}

/** Returns the error without what differs between objects: their names, and numbers. */
function patternOf({ key, deadLetter }: KeyItem): string {
  const { code = "", message = "" } = deadLetter?.error ?? {};
  const { name, namespace = "" } = partsOf(key);
  const known = [name, namespace].filter((each) => each !== "");
  const text = known.reduce((rest, each) => rest.replaceAll(each, "*"), message);
  return `${code} ${text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, "#")}`;
}
