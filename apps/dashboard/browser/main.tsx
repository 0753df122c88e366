import { render } from "preact";
import { App } from "./app.tsx";
import { watchKeys } from "./frame/keyboard.ts";
import { watchPageState } from "./parts/page-state.ts";
import { watchLinks } from "./state/router.ts";

watchLinks();
watchPageState();
watchKeys();
render(<App />, document.body);
