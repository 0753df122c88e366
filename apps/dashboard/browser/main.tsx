import { render } from "preact";
import { App } from "./app.tsx";
import { watchKeys } from "./frame/keyboard.ts";
import { watchLinks } from "./state/router.ts";

watchLinks();
watchKeys();
render(<App />, document.body);
