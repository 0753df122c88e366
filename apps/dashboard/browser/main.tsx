import { render } from "preact";
import { App } from "./frame/app.tsx";
import { watchKeys } from "./frame/keyboard.ts";
import { watchLinks } from "./frame/router.ts";

watchLinks();
watchKeys();
render(<App />, document.body);
