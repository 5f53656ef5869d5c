import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.cli.ConnectStandalone;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Sink BOOTSTRAP TOPIC CLIENT_ID GROUP FOLDER: a standalone worker of Kafka Connect with a sink that prints records. */
public final class Sink extends SinkConnector {
    private Map<String, String> given;

    public static void main(String[] given) throws Exception {
        String converter = "org.apache.kafka.connect.storage.StringConverter";
        Path folder = Files.createDirectories(Path.of(given[4]));
        Path worker = Files.writeString(folder.resolve("worker.properties"), String.join("\n",
            "bootstrap.servers=" + given[0], "key.converter=" + converter, "value.converter=" + converter,
            "listeners=http://127.0.0.1:0", "offset.flush.interval.ms=1000",
            "offset.storage.file.filename=" + folder.resolve("offsets")));
        Path sink = Files.writeString(folder.resolve("sink.properties"), String.join("\n",
            "name=sink", "connector.class=Sink", "tasks.max=1", "topics=" + given[1],
            "consumer.override.client.id=" + given[2], "consumer.override.group.id=" + given[3]));
        ConnectStandalone.main(new String[] {worker.toString(), sink.toString()});
    }

    @Override public String version() { return "1"; }
    @Override public void start(Map<String, String> config) { given = config; }
    @Override public void stop() { }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public Class<? extends Task> taskClass() { return Printer.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) {
        return new ArrayList<>(Collections.nCopies(most, given));
    }

    public static final class Printer extends SinkTask {
        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) { Say.say("I", "starts"); }
        @Override public void stop() { Say.say("I", "end"); }
        @Override public void put(Collection<SinkRecord> records) {
            for (SinkRecord one : records) Say.say("R", one.kafkaOffset(), one.value(), one.kafkaPartition());
        }
    }
}
