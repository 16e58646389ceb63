package roots

const noWait = 0
