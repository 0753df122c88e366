import { switchZone, zone, zoneName } from "../state/zone.ts";

/** Switches all times between UTC and the time zone of the browser. */
export function ZoneSwitch() {
  const other = zone.value === "utc" ? "local time" : "UTC";
  return (
    <button type="button" class="quiet zone" onClick={switchZone} title={`Show ${other}`}>
      <span class="hidden">Times in </span>
      {zoneName()}
      <span class="hidden">, show {other}</span>
    </button>
  );
}
