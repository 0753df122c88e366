import { defineConfig } from "konverge";
import { greeter } from "./src/greeter.ts";

export default defineConfig({ controllers: [greeter] });
