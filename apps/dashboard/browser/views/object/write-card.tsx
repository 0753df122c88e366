import { shortName } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import { ConflictSteps } from "./conflict-story.tsx";
import { flatten } from "./flatten.ts";

type Write = AttemptRecord["writes"][number];

/** A write: its fields, their previous owners and the conflicts before it. */
export function WriteCard({
  write,
  controller,
}: {
  readonly write: Write;
  readonly controller: string;
}) {
  const { verb, resource, namespace, name, subresource, patch, conflicts, fromVersion, toVersion } =
    write;
  const manager = write.fieldManager ?? controller;
  const taken = new Map(write.fieldsTakenOver?.map(({ path, manager: from }) => [path, from]));
  const fields = patch === undefined ? [] : flatten(patch);
  return (
    <article class="write">
      <header>
        <span class="tag">{verb}</span>{" "}
        <span class="strong">
          {resource} {shortName({ namespace, name })}
        </span>
        {subresource === undefined ? null : <span class="dim"> {subresource}</span>}
        {write.cluster === undefined ? null : <span class="dim"> in cluster {write.cluster}</span>}
        <span class="versions num">
          {fromVersion === undefined ? "" : `${fromVersion} → `}
          {toVersion ?? (verb === "delete" ? "deleted" : "")}
        </span>
      </header>
      {conflicts.length === 0 ? null : (
        <ConflictSteps
          conflicts={conflicts}
          written={toVersion === undefined ? undefined : { version: toVersion }}
        />
      )}
      {fields.length === 0 ? null : (
        <table class="diff" aria-label={`Fields written by ${manager}`}>
          <tbody>
            {fields.map(({ path, value }) => (
              <tr key={path}>
                <td class="gutter">
                  {manager}
                  {taken.has(path) ? <span class="race"> from {taken.get(path)}</span> : null}
                </td>
                <th scope="row">
                  <code>{path}</code>
                </th>
                <td class={value === null ? "removed" : "set"}>
                  <code>{value === null ? "removed" : JSON.stringify(value)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </article>
  );
}
