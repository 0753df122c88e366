import type { Fights } from "@konverge/contracts";
import { viewHref } from "../../frame/cluster.ts";
import { formatCount } from "../../parts/format.ts";

const MOST_COLUMNS = 6;
const MOST_ROWS = 20;

/** Who took which field from us, how often: a row a field of a kind, a column a manager. */
export function FlipMatrix({ flips }: Pick<Fights, "flips">) {
  const managers = ranked(flips, ({ manager }) => manager).slice(0, MOST_COLUMNS);
  const fields = ranked(flips, fieldOf).slice(0, MOST_ROWS);
  const cells = new Map<string, number>();
  for (const flip of flips) {
    const cell = `${fieldOf(flip)}\n${flip.manager}`;
    cells.set(cell, (cells.get(cell) ?? 0) + flip.count);
  }
  const most = Math.max(1, ...cells.values());
  return (
    <div class="panel scroll" tabIndex={0} role="region" aria-label="Managers against us">
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Field</th>
            {managers.map((manager) => (
              <th scope="col" class="right" key={manager}>
                <a href={viewHref("/runs", { manager })}>{manager}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => {
            const [resource, path] = field.split("\n");
            return (
              <tr key={field}>
                <th scope="row">
                  <code>{path}</code>
                  <div class="dim small">{resource}</div>
                </th>
                {managers.map((manager) => {
                  const count = cells.get(`${field}\n${manager}`);
                  return (
                    <td class="num right" key={manager}>
                      {count === undefined ? (
                        <span class="dim">–</span>
                      ) : (
                        <span class="cell">
                          <span
                            class="cell-heat"
                            style={{ opacity: String(0.12 + 0.4 * (count / most)) }}
                            aria-hidden="true"
                          />
                          {formatCount(count)}
                        </span>
                      )}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

type Flip = Fights["flips"][number];

function fieldOf({ resource, path }: Flip): string {
  return `${resource}\n${path}`;
}

/** Names by how often they occur, most first. */
function ranked(flips: readonly Flip[], nameOf: (flip: Flip) => string): string[] {
  const sums = new Map<string, number>();
  for (const flip of flips) sums.set(nameOf(flip), (sums.get(nameOf(flip)) ?? 0) + flip.count);
  return [...sums].toSorted(([, one], [, other]) => other - one).map(([name]) => name);
}
