export { EventTable } from "./event-table.tsx";
import { announce } from "../../frame/announcer.tsx";
import { formatInstant, formatMs } from "../../parts/format.ts";
import { now } from "../../parts/time.tsx";
import type { FoundObject } from "./live-cards.tsx";
import { yamlLines, type YamlLine } from "./yaml-lines.ts";

/** The colors of managers, in the order of their first line. */
const COLORS = 6;

/** The object as YAML. A gutter names the manager of each field, as in a blame view. */
export function YamlView({ live }: { readonly live: FoundObject }) {
  const lines = yamlLines(live.object, live.fieldOwners);
  const managers = [...new Set(lines.flatMap(({ owners }) => owners.map((each) => each.manager)))];
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(lines.map(({ text }) => `${text}\n`).join(""));
      announce("Copied");
    } catch {
      // The clipboard requires a secure context.
      announce("Clipboard unavailable; select and copy the text");
    }
  };
  return (
    <section aria-label="YAML">
      <div class="section-head">
        <ul class="legend" aria-label="Field managers">
          {managers.map((manager, index) => (
            <li key={manager}>
              <span class={`owner-${index % COLORS}`} />
              {manager}
            </li>
          ))}
        </ul>
        <button type="button" onClick={() => void copy()}>
          Copy YAML
        </button>
      </div>
      {live.isRedacted ? (
        <p class="note">The kind is sensitive, so only its identity and field names are shown.</p>
      ) : null}
      <div class="panel yaml" tabIndex={0} role="region" aria-label="Object as YAML">
        <table>
          <tbody>
            {lines.map((line, index) => (
              <YamlRow
                key={index}
                line={line}
                above={lines[index - 1]}
                color={managers.indexOf(line.owners[0]?.manager ?? "")}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function YamlRow({
  line: { text, owners },
  above,
  color,
}: {
  readonly line: YamlLine;
  readonly above: YamlLine | undefined;
  readonly color: number;
}) {
  const name = namesOf(owners);
  const isRepeated = above !== undefined && namesOf(above.owners) === name;
  return (
    <tr>
      <td class="yaml-text">
        <code>{text}</code>
      </td>
      <td class="yaml-owner" title={owners.map(titleOf).join("\n")}>
        {color < 0 ? null : <span class={`owner-mark owner-${color % COLORS}`} />}
        {isRepeated ? null : (
          <>
            {name}
            <span class="dim"> {agesOf(owners)}</span>
          </>
        )}
      </td>
    </tr>
  );
}

type Owners = YamlLine["owners"];

function namesOf(owners: Owners): string {
  return [...new Set(owners.map(({ manager }) => manager))].join(", ");
}

function agesOf(owners: Owners): string {
  const [first] = owners;
  return first?.at === undefined
    ? ""
    : formatMs(Math.max(0, now.value - Date.parse(first.at))).replace(" ", "");
}

function titleOf({ manager, operation, subresource, at }: Owners[number]): string {
  const through = subresource === undefined ? "" : ` of ${subresource}`;
  return `${manager}: ${operation}${through}${at === undefined ? "" : `, ${formatInstant(at)}`}`;
}
