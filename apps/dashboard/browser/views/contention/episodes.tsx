import type { ContentionEpisode } from "@konverge/contracts";
import { shortName } from "../../api/object-key.ts";
import { formatCount, plural } from "../../parts/format.ts";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Table, type Column } from "../../parts/table.tsx";
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
    title: "Writers",
    look: "writers",
    cell: ({ controller, managers, fields, kind }) => (
      <div>
        <div>
          {controller}
          {managers.length === 0
            ? null
            : ` ${kind === "ownershipFlip" ? "⇄" : "and"} ${managers.slice(0, 2).join(", ")}`}
          {managers.length > 2 ? ` and ${managers.length - 2} more` : ""}
        </div>
        {fields.slice(0, 2).map((field) => (
          <div key={field}>
            <code>{field}</code>
          </div>
        ))}
        {fields.length > 2 ? (
          <div class="dim small">and {plural(fields.length - 2, "more field")}</div>
        ) : null}
      </div>
    ),
  },
  {
    title: "Wasted per minute",
    look: "num right",
    cell: ({ perMinute, wastedWrites }) => (
      <>
        {formatCount(perMinute)}
        <div class="dim small nowrap">{formatCount(wastedWrites)} in 1 h</div>
      </>
    ),
  },
  {
    title: "Last hour",
    cell: ({ minutes, wastedWrites }) => (
      <Sparkline
        minutes={minutes.map((conflict) => ({ ok: 0, failed: 0, conflict }))}
        label={`Wasted writes per minute, ${formatCount(wastedWrites)} in the last hour`}
      />
    ),
  },
  { title: "Since", look: "nowrap", cell: ({ since }) => <Time at={since} /> },
  {
    title: "Suggested fix",
    look: "fix",
    cell: ({ suggestedFix }) => suggestedFix.replaceAll("`", ""),
  },
];

/** Objects whose writers undo or repeat each other's work, most wasted writes per minute first. */
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
          columns={COLUMNS}
          rows={episodes}
          keyOf={(episode) => `${episode.controller}${episode.resource}${shortName(episode)}`}
        />
        {more === 0 ? null : <p class="more dim small">and {plural(more, "more object")}</p>}
      </div>
    </section>
  );
}
