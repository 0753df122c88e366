import { href, path, query } from "../state/router.ts";

/** Links to the next page by the server's cursor and to the first page. The browser's history leads back. */
export function Pager({
  next,
  shown,
}: {
  readonly next: string | undefined;
  readonly shown: string;
}) {
  const params = Object.fromEntries(query.value);
  const isFirst = !query.value.has("cursor");
  return (
    <nav class="pager" aria-label="Pages">
      <span class="dim" role="status">
        {shown}
      </span>
      <span class="buttons">
        {isFirst ? null : (
          <a class="chip" href={href(path.value, { ...params, cursor: undefined })}>
            First page
          </a>
        )}
        {next === undefined ? null : (
          <a class="chip" rel="next" href={href(path.value, { ...params, cursor: next })}>
            Next page
          </a>
        )}
      </span>
    </nav>
  );
}
