/** A value as JSON. Long values scroll in place. */
export function Json({ value }: { readonly value: unknown }) {
  return (
    // Focusable, so that the keyboard can scroll it.
    <pre class="json" tabIndex={0}>
      {JSON.stringify(value, undefined, 2)}
    </pre>
  );
}
