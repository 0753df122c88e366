/** The lines of code where an error was thrown. */
export function Frames({ of = [] }: { readonly of?: readonly string[] | undefined }) {
  return of.length === 0 ? null : <pre class="frames">{of.join("\n")}</pre>;
}
