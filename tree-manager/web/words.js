// Numbers as people read them.
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    ++unit;
  }
  return (unit === 0 ? Math.round(count) : count.toFixed(1)) + " " + units[unit];
}

export const rate = (perSecond) => bytes(perSecond) + "/s";
export const whole = (number) => number.toLocaleString("en");
export const percent = (part) => (100 * part).toFixed(part < 0.1 ? 1 : 0) + " %";

export function duration(seconds) {
  if (seconds < 120) return Math.floor(seconds) + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  return seconds < 172800 ? Math.floor(seconds / 3600) + " h" : Math.floor(seconds / 86400) + " d";
}

export function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

export const counted = (number, word) => whole(number) + " " + word + (number === 1 ? "" : "s");
export const tenantName = (tenant) => tenant || "job token";

// As in protocol/include/tributary/protocol/late_rank.h.
const causes = {
  "late-call": "it begins its operations late", "slow-data": "its data come slowly", silent: "nothing comes from it",
  "no-cpu": "its thread waits for a processor", "lossy-link": "its host sends packets again",
  "not-called": "it has not called the operation", "device-errors": "its network device counts errors",
};
export const causeWords = (late) => causes[late.cause] ? " (" + causes[late.cause] + ")" : "";

export function lateWords(late) {
  return "rank " + late.rank + " on " + late.host + " is late by " + whole(late.lag_milliseconds) + " ms, " +
    counted(late.operations_behind, "operation") + " behind" + causeWords(late);
}
