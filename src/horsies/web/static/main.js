// Starts the small modules of the dashboard; each works alone, and pages work without all of them.
import { followCharts } from "./charts.js";
import { offerCopies } from "./copy.js";
import { followFilter } from "./filter.js";
import { followGraphs } from "./graph.js";
import { followKeys } from "./keys.js";
import { startLive } from "./live.js";
import { followMenus } from "./menus.js";
import { followSelection } from "./selection.js";
import { followTheme } from "./theme.js";
import { showTimes } from "./times.js";

// On a phone the menu scrolls: show where the viewer is.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

showTimes();
followTheme();
followKeys();
followMenus();
followCharts();
followGraphs();
followFilter();
followSelection();
offerCopies();
startLive();
