package guide

const noWait = 0
