import { raw } from "hono/html";
import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dee4, #3d444d); --dim: light-dark(#59636e, #9198a1);
  --good: light-dark(#0a6b52, #4bc9a5); --bad: light-dark(#a83a00, #ff9a5c); --race: light-dark(#5b3fa8, #c3a9ff); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
a { color: inherit; } h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .6rem; vertical-align: top;
  border-bottom: 1px solid var(--line); } th { font-weight: 600; color: var(--dim); white-space: nowrap; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; } .dim { color: var(--dim); }
.good { color: var(--good); } .bad { color: var(--bad); } .race { color: var(--race); } .outcome { font-weight: 600; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--dim); } dd { margin: 0; }
ul { margin: 0; padding-left: 1.1rem; } .scroll { overflow-x: auto; }
`;

/** No script, no foreign host: the page is what the server sent. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function layout(title: string, body: Html): Html {
  return html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${title} - Konverge</title>
      <style>
        ${raw(STYLE)}
      </style>
    </head>
    <body>
      <nav><a href="/">Konverge</a> <span class="dim">/</span> <a href="/queues">raw jobs</a></nav>
      <main>${body}</main>
    </body>
  </html>`;
}
