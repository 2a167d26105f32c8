{{style}}{{data}}{{shared}}{{script}}
