import { shortName } from "@konverge/core";
import type { ContentionEpisode } from "@konverge/contracts";
import { formatCount, plural } from "../../parts/format.ts";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Table, type Column, type RowGroup } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { objectHref } from "../../state/router.ts";

const COLUMNS: readonly Column<ContentionEpisode>[] = [
  {
    title: "Object",
    cell: (episode) => (
      <>
        {episode.key === undefined ? (
          <span class="strong">{shortName(episode)}</span>
        ) : (
          <a class="strong" href={objectHref(episode.key)} data-row>
            {shortName(episode)}
          </a>
        )}
        <div class="dim small secondary">{episode.resource}</div>
      </>
    ),
  },
  {
    title: "Wasted per minute",
    look: "num right",
    cell: ({ perMinute }) => formatCount(perMinute),
  },
  {
    title: "In the last hour",
    look: "num right",
    cell: ({ wastedWrites }) => formatCount(wastedWrites),
  },
  {
    title: "Course",
    cell: ({ minutes, wastedWrites }) => (
      <Sparkline
        minutes={minutes.map((conflict) => ({ ok: 0, failed: 0, conflict }))}
        label={`Wasted writes per minute, ${formatCount(wastedWrites)} in the last hour`}
      />
    ),
  },
  {
    title: "Throttled",
    cell: ({ isThrottled }) =>
      isThrottled === true ? "yes" : <span class="zero">{isThrottled === false ? "no" : "–"}</span>,
  },
  { title: "Since", look: "right nowrap", cell: ({ since }) => <Time at={since} /> },
];

const MOST_MANAGERS = 3;
const MOST_FIELDS = 3;

/** Objects whose writers undo or repeat each other's work, most wasted writes per minute first, by equal writers and fields. */
export function Episodes({
  episodes,
  more,
}: {
  readonly episodes: readonly ContentionEpisode[];
  readonly more: number;
}) {
  return (
    <section>
      <h2>Objects by wasted writes</h2>
      <div class="panel">
        <Table
          caption="Objects by wasted writes, in groups of equal writers"
          columns={COLUMNS}
          rows={episodes}
          groups={groupsOf(episodes)}
          keyOf={(episode) => `${episode.controller}${episode.resource}${shortName(episode)}`}
        />
        {more === 0 ? null : <p class="more dim small">and {plural(more, "more object")}</p>}
      </div>
    </section>
  );
}

/** A map keeps the order of its first entries, so the group with the most costly object is first. */
function groupsOf(episodes: readonly ContentionEpisode[]): RowGroup<ContentionEpisode>[] {
  const groups = Map.groupBy(episodes, ({ controller, kind, managers, fields, resource }) =>
    JSON.stringify([controller, kind, managers, fields, resource]),
  );
  return [...groups].map(([key, rows]) => ({ key, rows, head: <Writers of={rows[0]} /> }));
}

/** The writers of a group, the fields and the suggested fix. */
function Writers({ of }: { readonly of: ContentionEpisode | undefined }) {
  if (of === undefined) return null;
  const { controller, managers, fields, kind, suggestedFix } = of;
  const others = managers.slice(0, MOST_MANAGERS).join(", ");
  const rest = managers.length - MOST_MANAGERS;
  return (
    <span class="did">
      <span class="strong">
        {controller}
        {managers.length === 0 ? "" : ` ${kind === "ownershipFlip" ? "⇄" : "and"} ${others}`}
        {rest > 0 ? ` and ${rest} more` : ""}
      </span>
      {fields.slice(0, MOST_FIELDS).map((field) => (
        <code key={field}>{field}</code>
      ))}
      {fields.length > MOST_FIELDS ? (
        <span class="dim">and {plural(fields.length - MOST_FIELDS, "more field")}</span>
      ) : null}
      <span class="dim">{suggestedFix.replaceAll("`", "")}</span>
    </span>
  );
}
