#!/bin/sh
# get-clients.sh DIR [python] [java] [go] [node]    the clients of this folder, pinned, into DIR; all without a word
set -eu
here=$(cd "$(dirname "$0")" && pwd) dir=$1
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
[ $# -gt 0 ] || set -- python java go node
for kind in "$@"; do
    case $kind in
    python) python3 -m pip install -q --disable-pip-version-check --target "$dir/python" -r "$here/requirements.txt" ;;
    java)
        mkdir -p "$dir/java/classes"
        cat > "$dir/java/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>incidents</groupId><artifactId>clients</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency></dependencies></project>
POM
        mvn -q -B -f "$dir/java/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir/java/libs"
        javac -cp "$dir/java/libs/*" -d "$dir/java/classes" "$here"/java/*.java ;;
    go) (cd "$here/go" && go build -o "$dir/go-reader" .) ;;
    node)
        mkdir -p "$dir/node"
        cp "$here/node/package.json" "$here/node/reader.mjs" "$dir/node"
        (cd "$dir/node" && npm install --no-audit --no-fund --loglevel error) ;;
    *) echo "get-clients.sh: $kind is not one of python, java, go, node" >&2; exit 2 ;;
    esac
done
