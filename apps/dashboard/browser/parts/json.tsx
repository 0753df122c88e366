/** A value as JSON; long ones scroll in place. */
export function Json({ value }: { readonly value: unknown }) {
  return (
    // Reachable by keyboard, since it may have to be scrolled.
    <pre class="json" tabIndex={0}>
      {JSON.stringify(value, undefined, 2)}
    </pre>
  );
}
