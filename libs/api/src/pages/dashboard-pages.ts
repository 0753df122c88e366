import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Role } from "@konverge/contracts";
import { DASHBOARD_FOLDER } from "@konverge/dashboard";
import { Hono, type Context } from "hono";

/** The views of apps/dashboard, each with its own address to share. */
const VIEWS = [
  "attempts",
  "workflows",
  "contention",
  "live",
  "objects",
  "dead-letters",
  "approvals",
  "drift",
  "schedules",
  "guards",
  "workers",
  "audit",
  "docs",
] as const;
const OBJECT = "/objects/:cluster/:controller/:namespace/:name";
const APPROVAL = "/approvals/:cluster/:controller/:namespace/:name";
const DRIFT = "/drift/:cluster/:controller/:namespace/:name";
const RUN = "/runs/:workflow/:cluster/:id";
const CONTROLLER = "/controllers/:controller";
/** The addresses of views of one thing. */
const PARTS = [
  OBJECT,
  APPROVAL,
  DRIFT,
  RUN,
  CONTROLLER,
  "/schedules/:cluster/:name",
  "/docs/:page",
  "/hints/:code",
] as const;
/** Paths that are not views. */
const OTHERS = ["/v1", "/auth", "/jobs", "/metrics", "/docs", "/assets", "/livez", "/readyz"];

/** Allows only own scripts and styles, no foreign host and no markup from text. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".md": "text/markdown; charset=utf-8",
};
const NOT_BUILT =
  "The dashboard is not built; run `npm run setup`. The API is at /v1, raw jobs are at /jobs.\n";

interface Asset {
  readonly type: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
}

/** Data embedded in the page; before login, only the name of the OIDC provider. */
export interface PageFrame {
  /** The cluster of addresses without one. */
  readonly cluster?: string;
  readonly role?: Role;
  /** Of the token: it stands in for the author of orders. */
  readonly name?: string;
  /** True for a user who has logged in with the OIDC provider. */
  readonly isSignedIn?: boolean;
  /** The name of the OIDC provider; also before login. */
  readonly signIn?: string;
}

export interface DashboardPagesOptions {
  readonly frameOf: (context: Context) => Promise<PageFrame>;
  /** Folder of the built pages. */
  readonly folder?: string;
}

/**
 * Serves the built dashboard below any path prefix of a proxy, because the base of each page is relative. The pages contain
 * no data of the fleet. Files are read once at startup.
 */
export function dashboardPages({
  frameOf,
  folder = DASHBOARD_FOLDER,
}: DashboardPagesOptions): Hono {
  const app = new Hono();
  const page = join(folder, "index.html");
  if (!existsSync(page)) return app.get("/", ({ text }) => text(NOT_BUILT));
  const html = readFileSync(page, "utf8");
  const assets = readAssets(join(folder, "assets"));

  const answerPage = async (context: Context, status: 200 | 404 = 200) => {
    const frame = JSON.stringify(await frameOf(context));
    const up = "../".repeat(context.req.path.split("/").length - 2);
    context.header("content-security-policy", POLICY);
    context.header("cache-control", "no-cache");
    return context.html(
      html
        .replace('<base href="./"', `<base href="./${up}"`)
        .replace('content="{}"', `content="${escapeAttribute(frame)}"`),
      status,
    );
  };
  // An address without a view, opened in a browser, shows the navigation instead of a problem document.
  app.use("*", async (context, next) => {
    await next();
    if (!isUnservedPage(context)) return;
    context.res = await answerPage(context, 404);
  });
  for (const path of [...PARTS, "/", ...VIEWS.map((view) => `/${view}`)]) {
    app.get(path, (context) => answerPage(context));
  }
  app.get("/assets/:file", (context) => {
    const asset = assets.get(context.req.param("file"));
    if (asset === undefined) return context.notFound();
    const zipped = context.req.header("accept-encoding")?.includes("gzip") === true;
    context.header("content-type", asset.type);
    // File names contain a hash of the content.
    context.header("cache-control", "public, max-age=31536000, immutable");
    context.header("vary", "accept-encoding");
    if (zipped) context.header("content-encoding", "gzip");
    return context.body(zipped ? asset.gzip : asset.plain);
  });
  return app;
}

/** Without a token, an unknown address is answered with 401. */
function isUnservedPage({ req, res }: Context): boolean {
  return (
    req.method === "GET" &&
    [401, 404].includes(res.status) &&
    req.header("accept")?.includes("text/html") === true &&
    !OTHERS.some((path) => req.path === path || req.path.startsWith(`${path}/`))
  );
}

function readAssets(folder: string): ReadonlyMap<string, Asset> {
  return new Map(
    readdirSync(folder).map((name): [string, Asset] => {
      const plain = Uint8Array.from(readFileSync(join(folder, name)));
      const type = TYPES[extname(name)] ?? "application/octet-stream";
      return [name, { type, plain, gzip: Uint8Array.from(gzipSync(plain)) }];
    }),
  );
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
