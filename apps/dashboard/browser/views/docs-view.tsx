import { useEffect, useState } from "preact/hooks";
import { Empty, Loading } from "../parts/notice.tsx";
import { viewHref } from "../state/cluster.ts";
import { query } from "../state/router.ts";
import { Markdown, sectionOf } from "./docs/markdown.tsx";

declare global {
  interface ImportMeta {
    /** Replaced by Vite: the modules of the files that match, by path. */
    glob(pattern: string, options: object): Readonly<Record<string, string>>;
  }
}

/** The addresses of the pages in the files of the dashboard: they need no other host. */
const FILES = import.meta.glob("../../../../docs/*.md", {
  query: "?url",
  import: "default",
  eager: true,
});

const PAGES: ReadonlyMap<string, string> = new Map(
  Object.entries(FILES).map(([path, url]) => [path.replace(/^.*\/(.*)\.md$/, "$1"), url]),
);

/** A page of the documentation, of the version that runs. */
export function DocsView({ page }: { readonly page: string }) {
  const text = useText(PAGES.get(page));
  const at = query.value.get("at");
  useEffect(() => {
    if (text !== undefined && at !== null) document.getElementById(at)?.scrollIntoView();
  }, [text, at]);
  if (!PAGES.has(page)) return <NoPage />;
  return (
    <article class="doc">
      {page === "README" ? null : (
        <p class="crumbs">
          <a href={viewHref("/docs")}>Documentation</a>
        </p>
      )}
      {text === undefined ? <Loading /> : <Markdown text={text} page={page} />}
    </article>
  );
}

/** The explanation of a hint. */
export function HintView({ code }: { readonly code: string }) {
  const text = useText(PAGES.get("hints"));
  const section = text === undefined ? undefined : sectionOf(text, code);
  return (
    <article class="doc">
      <p class="crumbs">
        <a href={viewHref("/docs/hints")}>Hints</a>
      </p>
      {text === undefined ? (
        <Loading />
      ) : section === undefined ? (
        <Empty title={`No hint has the code ${code}`} />
      ) : (
        <Markdown text={section.replace(/^#+/, "#")} page="hints" />
      )}
      <p class="links">
        <a href={viewHref("/attempts", { hint: code })}>Attempts with this hint</a>
      </p>
    </article>
  );
}

function NoPage() {
  return (
    <Empty title="Page not found">
      <p>
        <a href={viewHref("/docs")}>Open the list of pages</a>
      </p>
    </Empty>
  );
}

function useText(url: string | undefined): string | undefined {
  const [text, setText] = useState<{ readonly url: string; readonly text: string }>();
  useEffect(() => {
    if (url === undefined) return;
    const read = async () => {
      try {
        const response = await fetch(url);
        setText({ url, text: response.ok ? await response.text() : "The page cannot be read." });
      } catch {
        setText({ url, text: "The page cannot be read: the server does not respond." });
      }
    };
    void read();
  }, [url]);
  return text !== undefined && text.url === url ? text.text : undefined;
}
