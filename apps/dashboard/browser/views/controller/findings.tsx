import { shortName } from "@konverge/core";
import type { Activity } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { partsOf } from "../../api/object-key.ts";
import { formatCount, plural } from "../../parts/format.ts";
import { Table, type Column } from "../../parts/table.tsx";
import { viewHref } from "../../state/cluster.ts";
import { objectHref } from "../../state/router.ts";
import { TimeByCause } from "./time-by-cause.tsx";

const OBJECTS: readonly Column<Activity["objects"][number]>[] = [
  {
    title: "Object",
    cell: ({ key }) => (
      <a class="strong" href={objectHref(key)} data-row>
        {shortName(partsOf(key))}
      </a>
    ),
  },
  { title: "Failed", look: "num right", cell: ({ failed }) => formatCount(failed) },
  { title: "Conflicts", look: "num right", cell: ({ conflicts }) => formatCount(conflicts) },
  {
    title: "Wasted writes",
    look: "num right",
    cell: ({ wastedWrites }) => formatCount(wastedWrites),
  },
];

/** The most frequent errors, the worst objects and the competing managers of a controller. */
export function Findings({
  activity: { sampled, errors, objects, managers, convergence, slo, more },
  controller,
}: {
  readonly activity: Activity;
  readonly controller: string;
}) {
  const of = `of the newest ${plural(sampled, "attempt")}`;
  const linkTo = (filter: "error" | "manager", value: string) => (
    <a class="strong" href={viewHref("/attempts", { controller, [filter]: value })} data-row>
      {value}
    </a>
  );
  return (
    <div class="findings">
      <Finding
        title="Time from change to success"
        note="of the selected time"
        isEmpty={convergence === undefined && slo === undefined}
        more={0}
      >
        <TimeByCause convergence={convergence} slo={slo} />
      </Finding>
      <Finding title="Errors" note={of} isEmpty={errors.length === 0} more={more.errors}>
        <Table
          caption="Errors by code"
          columns={[
            { title: "Code", cell: ({ code }) => linkTo("error", code) },
            { title: "Attempts", look: "num right", cell: ({ attempts }) => formatCount(attempts) },
          ]}
          rows={errors}
          keyOf={({ code }) => code}
        />
      </Finding>
      <Finding title="Objects" note={of} isEmpty={objects.length === 0} more={more.objects}>
        <Table
          caption="Objects with failed attempts, conflicts and wasted writes"
          columns={OBJECTS}
          rows={objects}
          keyOf={({ key }) => key}
        />
      </Finding>
      <Finding
        title="Competing managers"
        note="of the selected hours"
        isEmpty={managers.length === 0}
        more={more.managers}
      >
        <Table
          caption="Conflicts and ownership flips by field manager"
          columns={[
            { title: "Field manager", cell: ({ manager }) => linkTo("manager", manager) },
            {
              title: "Conflicts",
              look: "num right",
              cell: ({ attempts }) => formatCount(attempts),
            },
            { title: "Flips", look: "num right", cell: ({ flips }) => formatCount(flips) },
          ]}
          rows={managers}
          keyOf={({ manager }) => manager}
        />
      </Finding>
    </div>
  );
}

function Finding({
  title,
  note,
  isEmpty,
  more,
  children,
}: {
  readonly title: string;
  readonly note: string;
  readonly isEmpty: boolean;
  /** Entries that are not listed. */
  readonly more: number;
  readonly children: ComponentChildren;
}) {
  return (
    <section>
      <h2>
        {title} <span class="dim small">{note}</span>
      </h2>
      <div class="panel">
        {isEmpty ? <p class="more dim">None</p> : children}
        {more === 0 ? null : <p class="more dim small">and {formatCount(more)} more</p>}
      </div>
    </section>
  );
}
