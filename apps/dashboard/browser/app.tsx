import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "./api/call.ts";
import { ControllerView } from "./views/controller-view.tsx";
import { DeadLettersView } from "./views/dead-letters-view.tsx";
import { GuardsView } from "./views/guards-view.tsx";
import { LiveView } from "./views/live-view.tsx";
import { ScheduleView } from "./views/schedule-view.tsx";
import { ObjectsView } from "./views/objects-view.tsx";
import { LoginView } from "./views/login-view.tsx";
import { ObjectView } from "./views/object-view.tsx";
import { OverviewView } from "./views/overview-view.tsx";
import { AttemptsView } from "./views/attempts-view.tsx";
import { WorkersView } from "./views/workers-view.tsx";
import { WorkflowRunView } from "./views/workflow-run-view.tsx";
import { WorkflowsView } from "./views/workflows-view.tsx";
import { Empty } from "./parts/notice.tsx";
import { AsOf } from "./parts/as-of.tsx";
import { Announcer, announce } from "./frame/announcer.tsx";
import { Navigation, type NavigationPage } from "./parts/navigation.tsx";
import { Lazy } from "./parts/lazy.tsx";
import { setViewTitle } from "./parts/page-state.ts";
import { ZoneSwitch } from "./parts/zone-switch.tsx";
import { cluster as shownCluster, viewHref } from "./state/cluster.ts";
import { freshness } from "./state/freshness.ts";
import { path } from "./state/router.ts";
import { Search } from "./search.tsx";
import { callerName, defaultCluster, isAdmin, needsLogin, signedInUser } from "./state/session.ts";

interface Page extends NavigationPage {
  readonly view: () => ComponentChildren;
}

const loadMore = () => import("./views/more.ts");

/** A view whose code is loaded when it is first shown, so that the first view stays small. */
function lazyView(view: (more: typeof import("./views/more.ts")) => ComponentChildren) {
  return () => <Lazy load={loadMore}>{view}</Lazy>;
}

const PAGES: readonly Page[] = [
  { to: "/", icon: "overview", title: "Overview", view: () => <OverviewView /> },
  { to: "/attempts", icon: "attempts", title: "Attempts", view: () => <AttemptsView /> },
  { to: "/workflows", icon: "workflows", title: "Workflows", view: () => <WorkflowsView /> },
  {
    to: "/schedules",
    icon: "schedules",
    title: "Schedules",
    view: lazyView(({ SchedulesView }) => <SchedulesView />),
  },
  {
    to: "/contention",
    icon: "contention",
    title: "Contention",
    view: lazyView(({ ContentionView }) => <ContentionView />),
  },
  { to: "/live", icon: "live", title: "Live", view: () => <LiveView /> },
  { to: "/objects", icon: "objects", title: "Objects", view: () => <ObjectsView /> },
  {
    to: "/approvals",
    icon: "approvals",
    title: "Approvals",
    view: lazyView(({ ApprovalsView }) => <ApprovalsView />),
  },
  {
    to: "/drift",
    icon: "drift",
    title: "Drift",
    view: lazyView(({ DriftView }) => <DriftView />),
  },
  { to: "/dead-letters", icon: "dead", title: "Dead letters", view: () => <DeadLettersView /> },
  { to: "/guards", icon: "guards", title: "Guards", view: () => <GuardsView /> },
  { to: "/workers", icon: "workers", title: "Workers", view: () => <WorkersView /> },
  {
    to: "/audit",
    icon: "audit",
    title: "Audit log",
    view: lazyView(({ AuditView }) => <AuditView />),
  },
  {
    to: "/docs",
    icon: "docs",
    title: "Documentation",
    view: lazyView(({ DocsView }) => <DocsView page="README" />),
  },
];
const SHOWN_PAGES = PAGES.filter(({ to }) => to !== "/audit" || isAdmin);

export function App() {
  const shown = findPage();
  useEffect(() => {
    setViewTitle(shown.title);
  }, [shown.title]);
  if (needsLogin.value) return <LoginView />;
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={viewHref("/")}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <path d="M4 6c10 0 9 10 18 10M4 26c10 0 9-10 18-10M4 16h18" />
            <circle cx="26" cy="16" r="3" />
          </svg>
          Konverge
        </a>
        {shownCluster.value === defaultCluster ? null : (
          <span class="chip">{shownCluster.value}</span>
        )}
        <AsOf />
        <ZoneSwitch />
        <Search pages={SHOWN_PAGES} />
      </header>
      <nav class="side" aria-label="Views">
        <Navigation pages={SHOWN_PAGES} current={shown.to} />
        {callerName === undefined ? null : (
          <button type="button" class="quiet" onClick={() => void logOut()}>
            {signedInUser === undefined ? `Log out ${callerName}` : `Sign out ${signedInUser}`}
          </button>
        )}
        <button type="button" class="quiet keys-hint" popovertarget="keys-help">
          Shortcuts <kbd>?</kbd>
        </button>
      </nav>
      <main
        id="main"
        tabIndex={-1}
        class={freshness.value?.level === "stale" ? "stale" : undefined}
      >
        {shown.view()}
      </main>
      <KeysHelp />
      <Announcer />
    </>
  );
}

function findPage(): Page {
  const segments = path.value.split("/").filter((part) => part !== "");
  const [first, cluster = "", controller = "", namespace = "", name = ""] = segments;
  if (first === "objects" && segments.length === 5) {
    const at = segments.join("/");
    const target = { cluster, controller, namespace, name };
    const view = () => <ObjectView key={at} target={target} />;
    return { to: "/objects", icon: "objects", title: decodeURIComponent(name), view };
  }
  if (first === "approvals" && segments.length === 5) {
    const at = segments.join("/");
    const target = { cluster, controller, namespace, name };
    const view = lazyView(({ ApprovalView }) => <ApprovalView key={at} target={target} />);
    return { to: "/approvals", icon: "approvals", title: decodeURIComponent(name), view };
  }
  if (first === "drift" && segments.length === 5) {
    const at = segments.join("/");
    const target = { cluster, controller, namespace, name };
    const view = lazyView(({ DriftObjectView }) => <DriftObjectView key={at} target={target} />);
    return { to: "/drift", icon: "drift", title: decodeURIComponent(name), view };
  }
  if (first === "controllers" && segments.length === 2) {
    const title = decodeURIComponent(cluster);
    const view = () => <ControllerView key={title} name={title} />;
    return { to: "/controllers", icon: "attempts", title, view };
  }
  if (first === "runs" && segments.length === 4) {
    const id = segments.slice(1).map(decodeURIComponent).join("/");
    const view = () => <WorkflowRunView key={id} id={id} />;
    return { to: "/workflows", icon: "workflows", title: id, view };
  }
  if (first === "schedules" && segments.length === 3) {
    const title = decodeURIComponent(controller);
    const at = `${cluster}/${controller}`;
    const view = () => <ScheduleView key={at} path={at} name={title} />;
    return { to: "/schedules", icon: "schedules", title, view };
  }
  if (first === "docs" && segments.length === 2) {
    const view = lazyView(({ DocsView }) => <DocsView page={cluster} />);
    return { to: "/docs", icon: "docs", title: `${cluster} · documentation`, view };
  }
  if (first === "hints" && segments.length === 2) {
    const view = lazyView(({ HintView }) => <HintView code={cluster} />);
    return { to: "/docs", icon: "docs", title: `Hint ${cluster}`, view };
  }
  const found = PAGES.find(({ to }) => to === `/${segments.join("/")}`);
  return found ?? { to: "", icon: "overview", title: "Not found", view: () => <NotFound /> };
}

function NotFound() {
  return (
    <Empty title="Page not found">
      <p>
        Objects are at <code>/objects/cluster/controller/namespace/name</code>. Use <code>_</code>{" "}
        for cluster-scoped objects. <a href={viewHref("/")}>Open the overview</a>
      </p>
    </Empty>
  );
}

async function logOut(): Promise<void> {
  try {
    if (signedInUser === undefined) {
      await call("v1/session", { method: "DELETE" });
      window.location.reload();
    } else {
      const { url } = await call<{ readonly url: string }>("auth/logout", { method: "POST" });
      window.location.assign(url);
    }
  } catch (error) {
    announce(error instanceof Error ? error.message : String(error));
  }
}

function toMain(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("main")?.focus();
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K  /", "Find objects, runs, controllers, views and actions"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["?", "Show keyboard shortcuts"],
];

function KeysHelp() {
  return (
    <div
      id="keys-help"
      class="keys-help"
      popover="auto"
      role="dialog"
      aria-label="Keyboard shortcuts"
    >
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
