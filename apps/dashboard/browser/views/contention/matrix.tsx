import type { ComponentChildren } from "preact";
import { viewHref } from "../../state/cluster.ts";
import { formatCount, plural } from "../../parts/format.ts";

const MOST_COLUMNS = 6;
const MOST_ROWS = 20;

/** A number of encounters of a row with a field manager. */
interface Meeting {
  /** Entries with the same text share a row. */
  readonly row: string;
  readonly manager: string;
  readonly count: number;
}

export interface MatrixProps {
  readonly label: string;
  /** Header of the first column. */
  readonly corner: string;
  readonly meetings: readonly Meeting[];
  readonly head: (row: string) => ComponentChildren;
}

/** A heat map with a column per field manager. Higher counts are darker. */
export function Matrix({ label, corner, meetings, head }: MatrixProps) {
  const allManagers = ranked(meetings, ({ manager }) => manager);
  const allRows = ranked(meetings, ({ row }) => row);
  const managers = allManagers.slice(0, MOST_COLUMNS);
  const rows = allRows.slice(0, MOST_ROWS);
  const hidden = [
    ...(allRows.length > MOST_ROWS ? [plural(allRows.length - MOST_ROWS, "more row")] : []),
    ...(allManagers.length > MOST_COLUMNS
      ? [plural(allManagers.length - MOST_COLUMNS, "more field manager")]
      : []),
  ];
  const cells = new Map<string, number>();
  for (const { row, manager, count } of meetings) {
    const cell = JSON.stringify([row, manager]);
    cells.set(cell, (cells.get(cell) ?? 0) + count);
  }
  const most = Math.max(1, ...cells.values());
  return (
    <div class="panel scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">{corner}</th>
            {managers.map((manager) => (
              <th scope="col" class="right" key={manager}>
                <a href={viewHref("/attempts", { manager })}>{manager}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row}>
              <th scope="row">{head(row)}</th>
              {managers.map((manager) => (
                <td class="num right" key={manager}>
                  <Cell count={cells.get(JSON.stringify([row, manager]))} most={most} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {hidden.length === 0 ? null : <p class="more dim small">and {hidden.join(", ")}</p>}
    </div>
  );
}

function Cell({ count, most }: { readonly count: number | undefined; readonly most: number }) {
  if (count === undefined) return <span class="dim">–</span>;
  const opacity = String(0.12 + 0.4 * (count / most));
  return (
    <span class="cell">
      <span class="cell-heat" style={{ opacity }} aria-hidden="true" />
      {formatCount(count)}
    </span>
  );
}

/** Names by how often they occur, most first. */
function ranked(meetings: readonly Meeting[], nameOf: (meeting: Meeting) => string): string[] {
  const sums = new Map<string, number>();
  for (const each of meetings) sums.set(nameOf(each), (sums.get(nameOf(each)) ?? 0) + each.count);
  return [...sums].toSorted(([, one], [, other]) => other - one).map(([name]) => name);
}
