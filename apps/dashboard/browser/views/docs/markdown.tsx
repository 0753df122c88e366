import type { ComponentChildren } from "preact";
import { viewHref } from "../../state/cluster.ts";

/** Shows a page of the documentation: the subset of Markdown that it uses. `page` is its name without extension. */
export function Markdown({ text, page }: { readonly text: string; readonly page: string }) {
  return blocksOf(text).map((block, index) => <BlockView key={index} block={block} page={page} />);
}

type Block =
  | { readonly kind: "heading"; readonly level: number; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "table"; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: "list"; readonly isNumbered: boolean; readonly items: readonly string[] }
  | { readonly kind: "text"; readonly text: string };

/** Returns the id of a heading, as GitHub forms it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

/** Returns the section below a heading with this anchor, with the heading. */
export function sectionOf(text: string, anchor: string): string | undefined {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => {
    const heading = /^#+ (.*)$/.exec(line)?.[1];
    return heading !== undefined && anchorOf(heading) === anchor;
  });
  if (start === -1) return undefined;
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 1;
  const length = lines.slice(start + 1).findIndex((line) => {
    const mark = /^(#+) /.exec(line)?.[1];
    return mark !== undefined && mark.length <= level;
  });
  return lines.slice(start, length === -1 ? undefined : start + 1 + length).join("\n");
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? "";
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    const take = (isPart: (line: string) => boolean): string[] => {
      const from = at;
      while (at < lines.length && isPart(lines[at] ?? "")) at++;
      return lines.slice(from, at);
    };
    if (line.trim() === "") at++;
    else if (heading !== null) {
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
      at++;
    } else if (/^\s*```/.test(line)) {
      at++;
      const code = take((each) => !/^\s*```/.test(each));
      at++;
      blocks.push({ kind: "code", text: code.join("\n") });
    } else if (line.startsWith("|")) {
      const rows = take((each) => each.startsWith("|")).map(cellsOf);
      blocks.push({ kind: "table", rows: rows.filter((_, index) => index !== 1) });
    } else if (ITEM.test(line)) {
      const isNumbered = /^\s*\d/.test(line);
      const part = take((each) => ITEM.test(each) || /^\s+\S/.test(each));
      blocks.push({ kind: "list", isNumbered, items: itemsOf(part) });
    } else {
      const part = take(
        (each) => each.trim() !== "" && !/^(#|\||\s*```)/.test(each) && !ITEM.test(each),
      );
      blocks.push({ kind: "text", text: part.join(" ") });
    }
  }
  return blocks;
}

const ITEM = /^\s*(?:[-*]|\d+\.) /;

function cellsOf(line: string): string[] {
  return line
    .replaceAll(/^\|\s*|\s*\|\s*$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function itemsOf(lines: readonly string[]): string[] {
  const items: string[] = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  }
  return items;
}

function BlockView({ block, page }: { readonly block: Block; readonly page: string }) {
  switch (block.kind) {
    case "heading": {
      const Heading = block.level === 1 ? "h1" : block.level === 2 ? "h2" : "h3";
      return <Heading id={anchorOf(block.text)}>{inline(block.text, page)}</Heading>;
    }
    case "code":
      return (
        <pre class="json" tabIndex={0}>
          {block.text}
        </pre>
      );
    case "text":
      return <p>{inline(block.text, page)}</p>;
    case "list": {
      const List = block.isNumbered ? "ol" : "ul";
      return (
        <List class={block.isNumbered ? "numbered" : "bullets"}>
          {block.items.map((item) => (
            <li key={item}>{inline(item, page)}</li>
          ))}
        </List>
      );
    }
    case "table": {
      const [head = [], ...rows] = block.rows;
      return (
        <div
          class="panel scroll"
          tabIndex={0}
          role="region"
          aria-label={head.join(", ") || "Table"}
        >
          <table>
            <thead>
              <tr>
                {head.map((cell, index) => (
                  <th key={index} scope="col">
                    {inline(cell, page)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((cells, row) => (
                <tr key={row}>
                  {cells.map((cell, index) => (
                    <td key={index}>{inline(cell, page)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
  }
}

/** Code, bold, emphasis, images and links, in the order in which they begin. */
const INLINE =
  /`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])[_*]([^_*]+)[_*](?![\w*])|(!?)\[([^\]]*)\]\(([^)\s]+)\)/;

function inline(text: string, page: string): ComponentChildren[] {
  const found = INLINE.exec(text);
  if (found === null) return [text];
  const [whole, code, bold, emphasis, image, label = "", target = ""] = found;
  const node =
    code !== undefined ? (
      <code>{code}</code>
    ) : bold !== undefined ? (
      <strong>{inline(bold, page)}</strong>
    ) : emphasis !== undefined ? (
      <em>{inline(emphasis, page)}</em>
    ) : image === "!" ? (
      <span class="dim">{label}</span>
    ) : (
      <DocLink target={target} page={page}>
        {inline(label, page)}
      </DocLink>
    );
  const rest = text.slice(found.index + whole.length);
  return [text.slice(0, found.index), node, ...inline(rest, page)];
}

/** A link to another page of the documentation, or to a host. Links to other files of the repository are text. */
function DocLink({
  target,
  page,
  children,
}: {
  readonly target: string;
  readonly page: string;
  readonly children: ComponentChildren;
}) {
  if (/^https?:/.test(target)) {
    return (
      <a href={target} target="_blank" rel="noreferrer">
        {children}
      </a>
    );
  }
  const [, name = page, at] = /^(?:([\w-]+)\.md)?(?:#([\w-]+))?$/.exec(target) ?? [];
  if (at === undefined && name === page) return <span>{children}</span>;
  return <a href={viewHref(`/docs/${name}`, { at })}>{children}</a>;
}
