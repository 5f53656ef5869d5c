#!/bin/sh
# get-clients.sh DIR [python] [java] [go] [node] [confluent]    the clients of this folder, pinned, into DIR; all but the
# last without a word
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
        dep() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
        jars() { # FOLDER DEPENDENCIES: each client with the kafka-clients that it was released with
            mkdir -p "$dir/java/$1"
            echo "<project><modelVersion>4.0.0</modelVersion><groupId>incidents</groupId><artifactId>$1</artifactId>" \
                "<version>1</version><dependencies>$2</dependencies></project>" > "$dir/java/$1/pom.xml"
            mvn -q -B -f "$dir/java/$1/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir/java/$1"
        }
        jars libs "$(dep org.apache.kafka kafka-streams 4.4.0)$(dep org.slf4j slf4j-simple 1.7.36)"
        jars connect "$(dep org.apache.kafka connect-runtime 4.4.0)$(dep org.slf4j slf4j-simple 1.7.36)"
        jars vertx "$(dep io.vertx vertx-kafka-client 5.2.3)$(dep org.slf4j slf4j-simple 2.0.17)"
        jars camel "$(dep org.apache.camel camel-kafka 4.22.0)$(dep org.apache.camel camel-main 4.22.0)$(dep org.slf4j slf4j-simple 2.0.17)"
        mkdir -p "$dir/java/classes"
        javac -cp "$dir/java/libs/*:$dir/java/connect/*:$dir/java/vertx/*:$dir/java/camel/*" -d "$dir/java/classes" "$here"/java/*.java ;;
    go) (cd "$here/go" && go build -o "$dir/go-reader" .) ;;
    node)
        mkdir -p "$dir/node"
        cp "$here/node/package.json" "$here/node/reader.mjs" "$dir/node"
        (cd "$dir/node" && npm install --no-audit --no-fund --loglevel error) ;;
    confluent) # its compiled part comes from GitHub, or is built here: with the headers of Node, zlib and OpenSSL
        mkdir -p "$dir/node"
        (cd "$dir/node" && CKJS_LINKING=dynamic JOBS=1 npm install --no-save --no-audit --no-fund --loglevel error \
            @confluentinc/kafka-javascript@1.10.1) ;;
    *) echo "get-clients.sh: $kind is not one of python, java, go, node, confluent" >&2; exit 2 ;;
    esac
done
