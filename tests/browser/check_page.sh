#!/usr/bin/env bash
# Loads the HTML report in a headless browser, light and dark: every plot is drawn and shows more
# than an empty canvas, nothing is reported to the console, no table is cut off at 1200 pixels.
# Then the same for broken pages, which must be found out. Arguments: kkttune, the browser.
set -euo pipefail

program=$1 browser=${2:-}
if ! command -v "$browser" >/dev/null; then
    echo "no browser: skipped"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Added to the end of a page: what a reader would see, as attributes of its root element.
cat >probe.html <<'END'
<script>
addEventListener("load", () => {
  const shows = (canvas) => {
    const { width, height } = canvas, context = canvas.getContext("2d");
    const seen = new Set();
    if (width > 0 && height > 0)
      new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)
        .forEach((pixel) => seen.add(pixel));
    return canvas.dataset.drawn === "yes" && seen.size > 10;
  };
  const all = [...document.querySelectorAll("canvas")];
  const cut = [...document.querySelectorAll(".wide")].filter((e) => e.scrollWidth > e.clientWidth);
  document.documentElement.dataset.probe =
    "canvases " + all.length + " shown " + all.filter(shows).length + " cut " + cut.length;
});
</script>
END

# look PAGE OPTION...: the probe's answer, then the lines of the console.
look() {
    local page=$1
    shift
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
        --window-size=1200,1000 --hide-scrollbars --virtual-time-budget=5000 \
        --enable-logging=stderr --dump-dom "$@" "file://$work/$page" >dom 2>log || true
    grep -o 'data-probe="[^"]*"' dom | head -n 1 || echo "the page did not load"
    grep -o 'CONSOLE.*' log || true
}

"$program" --arch sm90 --backend fake:seed=3 --db k.db --out out >/dev/null 2>run.log || {
    cat run.log
    exit 1
}
sed '/<\/body>/d; /<\/html>/d' out/report_sm90.html | cat - probe.html >page.html
canvases=$(grep -c '<canvas' page.html)
[ "$canvases" -ge 5 ]
wanted="data-probe=\"canvases $canvases shown $canvases cut 0\""
for mode in --force-color-profile=srgb --blink-settings=preferredColorScheme=0; do
    found=$(look page.html "$mode")
    if [ "$found" != "$wanted" ]; then
        echo "$mode: expected $wanted, found $found"
        exit 1
    fi
done

# A page whose data are broken, and one without the library, are told from a good one.
sed 's/id="plot-data">\[/&oops/' page.html >broken.html
sed 's/ new Chart(/ new NoChart(/' page.html >bare.html
for page in broken bare; do
    found=$(look $page.html)
    case $found in
        *"canvases $canvases shown 0 "*CONSOLE*Error*) ;;
        *)
            echo "the fault of $page.html was not seen: $found"
            exit 1
            ;;
    esac
done
echo "$canvases plots drawn"
