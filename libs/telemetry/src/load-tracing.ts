import type { TracerProvider } from "@opentelemetry/api";
import { createTracing } from "./create-tracing.ts";
import type { Tracing } from "./tracing.ts";

const SCOPE = "konverge";
/** What handing on the last spans may take, in ms. A collector that is away must not hold a process. */
const FLUSH_MS = 2_000;

/** What an SDK's provider has beyond the API, and the API's stand-in for one that is not there yet. */
interface Provider extends TracerProvider {
  readonly getDelegate?: () => TracerProvider;
  readonly getDelegateTracer?: (
    ...args: Parameters<TracerProvider["getTracer"]>
  ) => ReturnType<TracerProvider["getTracer"]> | undefined;
  readonly forceFlush?: () => Promise<void>;
}

/**
 * Traces by the OpenTelemetry SDK that the process has registered; undefined where there is none, or not even
 * `@opentelemetry/api`. Looked up once: an SDK that is registered later is not seen.
 */
export async function loadTracing(version: string): Promise<Tracing | undefined> {
  const api = await importApi();
  if (api === undefined) return undefined;
  const provider: Provider = api.trace.getTracerProvider();
  const tracer =
    provider.getDelegateTracer === undefined
      ? provider.getTracer(SCOPE, version)
      : provider.getDelegateTracer(SCOPE, version);
  if (tracer === undefined) return undefined;
  const sdk: Provider = provider.getDelegate?.() ?? provider;
  return createTracing(api, tracer, () => flush(sdk));
}

async function importApi(): Promise<typeof import("@opentelemetry/api") | undefined> {
  try {
    return await import("@opentelemetry/api");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}

async function flush(sdk: Provider): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, FLUSH_MS);
  try {
    // What an exporter could not hand on is the SDK's to tell, by its own diagnostics.
    await Promise.race([Promise.resolve(sdk.forceFlush?.()).catch(() => undefined), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
