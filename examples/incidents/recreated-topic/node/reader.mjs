// reader.mjs LIBRARY BOOTSTRAP TOPIC CLIENT_ID GROUP: prints what it reads until SIGTERM.
const [library, bootstrap, topic, clientId, groupId] = process.argv.slice(2)
const say = (kind, ...words) =>
  console.log(kind, (Date.now() / 1000).toFixed(3), ...words.map(word => String(word).replace(/\n/g, ' ')))
const error = thrown => say('E', `${thrown?.name}:`, thrown?.message ?? thrown)
process.on('uncaughtException', error)
process.on('unhandledRejection', error)
let close = async () => {}
process.on('SIGTERM', () => {
  setTimeout(() => process.exit(0), 4000)
  close().catch(error).finally(() => { say('I', 'end'); process.exit(0) })
})

async function kafkajs () {
  const { Kafka, logLevel } = (await import('kafkajs')).default
  const logCreator = () => ({ log }) => say('I', 'log', log.message, log.error ?? '')
  const consumer = new Kafka({ clientId, brokers: bootstrap.split(','), logLevel: logLevel.WARN, logCreator }).consumer({ groupId })
  consumer.on(consumer.events.CRASH, event => error(event.payload.error))
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const eachMessage = async ({ partition, message }) => say('R', message.offset, message.value, partition)
  await consumer.run({ eachMessage, autoCommitInterval: 1000 })
  close = () => consumer.disconnect()
}

async function confluent () {
  const { KafkaJS } = (await import('@confluentinc/kafka-javascript')).default
  const own = { groupId, fromBeginning: true, autoCommitInterval: 1000 }
  const kafka = new KafkaJS.Kafka({ kafkaJS: { clientId, brokers: bootstrap.split(','), logLevel: KafkaJS.logLevel.WARN } })
  const consumer = kafka.consumer({ kafkaJS: own })
  await consumer.connect()
  await consumer.subscribe({ topic })
  await consumer.run({ eachMessage: async ({ partition, message }) => say('R', message.offset, message.value, partition) })
  close = () => consumer.disconnect()
}

async function platformatic () {
  const { Consumer, stringDeserializers } = await import('@platformatic/kafka')
  const own = { clientId, groupId, bootstrapBrokers: bootstrap.split(','), deserializers: stringDeserializers, autocommit: 1000 }
  const consumer = new Consumer(library.includes('848') ? { ...own, groupProtocol: 'consumer' } : own)
  consumer.on('error', error)
  const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
  stream.on('error', error)
  stream.on('close', () => say('I', 'stream closed'))
  stream.on('data', message => say('R', message.offset, message.value, message.partition))
  close = () => consumer.close(true)
}

async function kafkaTs () {
  const { createKafkaClient } = await import('kafka-ts')
  const client = createKafkaClient({ clientId, bootstrapServers: bootstrap.split(',').map(address => ({ host: address.split(':')[0], port: Number(address.split(':')[1]) })) })
  const onBatch = async messages => { for (const one of messages) say('R', one.offset, one.value, one.partition) }
  const own = { groupId, topics: [topic], allowTopicAutoCreation: false, fromTimestamp: -2n }
  const consumer = await client.startConsumer({ ...own, onBatch, onError: error })
  close = () => consumer.close()
}

async function noKafka () {
  const Kafka = (await import('no-kafka')).default
  const logger = { logFunction: (...words) => say('I', 'log', ...words.map(word => word?.message ?? word)), logLevel: 2 }
  const own = { connectionString: bootstrap, groupId, startingOffset: Kafka.EARLIEST_OFFSET, logger }
  const consumer = new Kafka.GroupConsumer(clientId === '-' ? own : { ...own, clientId })
  const handler = async (messages, name, partition) => {
    for (const one of messages) say('R', one.offset, one.message.value, partition)
  }
  await consumer.init([{ subscriptions: [topic], handler }])
}

const readers = { kafkajs, confluent, platformatic, 'platformatic-848': platformatic, 'kafka-ts': kafkaTs, 'no-kafka': noKafka }
readers[library]().catch(error)
