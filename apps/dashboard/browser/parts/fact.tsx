import type { ComponentChildren } from "preact";

export interface FactProps {
  readonly title: string;
  /** A smaller second line. */
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** An entry of a `dl.facts`. */
export function Fact({ title, note, children }: FactProps) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        {children}
        {note === undefined ? null : <div class="dim small">{note}</div>}
      </dd>
    </div>
  );
}
