export { createDemoProgram } from "./create-demo-program.ts";
