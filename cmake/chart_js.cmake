# Chart.js, which draws the plots of the HTML report and is embedded in the program: the build that
# defines the global `Chart` without modules.
set(names chart.min.js Chart.min.js chart.umd.js chart.umd.min.js chart.js)
find_file(KKT_CHART_JS NAMES ${names}
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist /usr/local/share/javascript/chart.js
  DOC "Chart.js 3 or 4, the file that defines `Chart` without modules")
if(NOT KKT_CHART_JS)
  message(FATAL_ERROR "Chart.js was not found: install the package libjs-chart.js, or name the "
    "file with -DKKT_CHART_JS=.../chart.min.js")
endif()
if(NOT EXISTS ${KKT_CHART_JS} OR IS_DIRECTORY ${KKT_CHART_JS})
  message(FATAL_ERROR "KKT_CHART_JS=${KKT_CHART_JS} is no file: install the package libjs-chart.js "
    "and remove the setting, or name chart.min.js itself")
endif()
file(READ ${KKT_CHART_JS} chart_text)
if(NOT chart_text MATCHES "Chart\\.js v[34]\\." OR NOT chart_text MATCHES "globalThis")
  message(FATAL_ERROR "${KKT_CHART_JS} is not Chart.js 3 or 4 for pages without modules: install "
    "the package libjs-chart.js, or name another file with -DKKT_CHART_JS")
endif()
if(chart_text MATCHES "</[Ss][Cc][Rr][Ii][Pp][Tt]|<!--")
  message(FATAL_ERROR "${KKT_CHART_JS} cannot stand inside a page: it holds </script or <!--")
endif()
unset(chart_text)
