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
