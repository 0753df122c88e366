import type { ComponentChildren } from "preact";
import type { Trouble } from "../api/call.ts";

/** An empty state with a suggested next step. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A failed request, with its invalid fields. */
export function TroubleNote({ trouble }: { readonly trouble: Trouble | undefined }) {
  if (trouble === undefined) return null;
  return (
    <div class="note bad" role="alert">
      <strong>{trouble.title}</strong> <span>{trouble.detail}</span>
      {trouble.errors?.map(({ pointer, detail }) => (
        <div key={pointer}>
          <code>{pointer}</code> {detail}
        </div>
      ))}
    </div>
  );
}

/** A placeholder of about the final height, which prevents layout shifts. */
export function Loading({ rows = 6 }: { readonly rows?: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} />
      ))}
    </div>
  );
}
