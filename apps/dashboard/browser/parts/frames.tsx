/** The lines of code where an error was thrown. */
export function Frames({ of = [] }: { readonly of?: readonly string[] | undefined }) {
  if (of.length === 0) return null;
  return (
    <pre class="frames" tabIndex={0} role="region" aria-label="Stack trace">
      {of.join("\n")}
    </pre>
  );
}
