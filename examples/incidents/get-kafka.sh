#!/bin/sh
# get-kafka.sh DIR VERSION [SCALA]    the jars of a broker, its tools and ZooKeeper, into DIR/kafka-VERSION/libs
# get-kafka.sh DIR VERSION client     those of kafka-clients alone, into DIR/client-VERSION/libs
#
# Asks Maven, as it is set up on this machine. SCALA is 2.12 up to Kafka 2.4, else 2.13.
set -eu
dir=$1 version=$2 scala=${3:-2.13}
dep() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
if [ "$scala" = client ]; then
    home=$dir/client-$version needed=$(dep org.apache.kafka kafka-clients "$version")
else
    home=$dir/kafka-$version needed="$(dep org.apache.kafka "kafka_$scala" "$version")$(dep org.apache.kafka kafka-tools "$version")"
    case $version in # Java 14 and later cannot run the ZooKeeper client of these, nor has it the Base64 of 0.x
    1.*|2.[0-3].*) needed="$needed$(dep org.apache.zookeeper zookeeper 3.5.9)" ;;
    0.*) needed="$needed$(dep javax.xml.bind jaxb-api 2.3.1)" ;;
    esac
fi
mkdir -p "$home"
cat > "$home/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>incidents</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>$needed$(dep org.slf4j slf4j-simple 1.7.36)</dependencies></project>
POM
mvn -q -B -f "$home/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$(cd "$home" && pwd)/libs"
echo "$home/libs: $(ls "$home/libs" | wc -l) jars"
