import { createHash } from "node:crypto";
import type { Context } from "hono";

const STYLE =
  ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}";
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export interface MessagePage {
  readonly status: 200 | 400 | 401 | 403 | 429 | 500 | 503;
  readonly title: string;
  readonly text: string;
  readonly link: { readonly url: string; readonly text: string };
  /** Follow the link at once. */
  readonly isForwarding?: boolean;
}

/** Answers with a page without scripts. */
export function answerMessage(context: Context, page: MessagePage): Response {
  const { status, title, text, link, isForwarding = false } = page;
  context.header("content-security-policy", POLICY);
  context.header("cache-control", "no-store");
  const url = escapeHtml(link.url);
  const forward = isForwarding ? `<meta http-equiv="refresh" content="0;url=${url}">` : "";
  return context.html(
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${forward}` +
      `<title>${escapeHtml(title)} · Konverge</title><style>${STYLE}</style></head>` +
      `<body><main><h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p><p><a href="${url}">${escapeHtml(link.text)}</a></p></main></body></html>`,
    status,
  );
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
